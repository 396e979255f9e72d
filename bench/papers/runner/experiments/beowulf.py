"""The Beowulf papers' measurements of network and disks (Sterling et al., 1995)."""

from runner.experiments import beowulf_files, beowulf_network
from runner.outcome import Outcome

TITLE = "Beowulf: token exchange, round trip and file transfers on shared Ethernet"


def run(context):
    outcome = Outcome()
    outcome.say(
        "The papers' hosts shared an Ethernet of 10 or 100 Mbit/s through hubs. Here every frame of a "
        "channel, whoever sends it, passes one shaper of that rate, so that both directions and all "
        "pairs together get what one half duplex medium gives. Unlike an Ethernet this medium has no "
        "collisions, and the processors behind it are this machine's: figures above the published ones "
        "are not ours to boast of. They characterise the network that other figures stand on. "
        "Several channels are used at once by the programs here, packet by packet, as the papers' "
        "driver did.")
    beowulf_network.run(context, outcome)
    beowulf_files.run(context, outcome)
    outcome.say("The scaling of an N-body and a fluid dynamics code, which the first paper shows too, is not "
                "repeated: it says nothing about files.")
    return outcome
