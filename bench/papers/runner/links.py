"""What joins hosts: full duplex links to a switch, or one medium that all of them share.

A channel is made of devices in the switch's namespace.  Each class says, as lines for `ip -batch` and
`tc -batch`: how a channel is made (`channel`), how a host's port joins it (`port`), and what is shaped
there (`shape_channel`) and at both ends of a host's link (`shape_host`).
"""


class Link:
    """A full duplex link to a switch: `mbit` Mbit/s each way, None for as fast as the machine is.

    `burst` bytes may pass at once: with less than 128 kB at 100 Mbit/s the shaper, not the link, is
    what one measures.
    """

    shared = False

    def __init__(self, mbit=100, burst=128 * 1024):
        self.mbit = mbit
        self.burst = burst

    @property
    def bytes_per_second(self):
        return self.mbit * 1e6 / 8

    def shape(self, device):
        """The tc command that shapes what leaves by `device`; 50 ms of queue, as a switch has."""
        return (f"qdisc add dev {device} root tbf rate {self.mbit}mbit burst {self.burst} "
                f"latency 50ms")

    def channel(self, c):
        return [f"link add br{c} type bridge", f"link set br{c} up"]

    def port(self, c, device):
        return [f"link set {device} master br{c}", f"link set {device} up"]

    def shape_channel(self, _):
        return []

    def shape_host(self, device):
        return [self.shape(device)] if self.mbit else []


class Hub:
    """A half duplex medium of `mbit` Mbit/s for all hosts together, as an Ethernet with a hub is.

    What a host sends may leave the bridge `br` by one device only, `up`, whose shaper is the medium:
    both directions and all hosts pass it.  A second bridge sends every frame back by the device that it
    came from, and `br`, which learns no addresses, delivers it to every host, as a hub does.  There are
    no collisions: who finds the medium busy waits in its queue, and nothing is lost while 200 ms of the
    medium's time hold what is under way.
    """

    shared = True
    # Preamble, checksum and gap of a frame, which take the medium's time and are not in its length.
    overhead = 24

    def __init__(self, mbit):
        self.mbit = mbit
        # 2.6 ms, which bears a late timer; at least two frames.
        self.burst = max(4 * 1024, mbit * 328)

    @property
    def bytes_per_second(self):
        return self.mbit * 1e6 / 8

    def channel(self, c):
        return [f"link add br{c} type bridge", f"link add back{c} type bridge",
                f"link add up{c} type veth peer name echo{c}",
                f"link set up{c} master br{c}", f"link set echo{c} master back{c}",
                f"link set up{c} type bridge_slave learning off",
                f"link set echo{c} type bridge_slave learning off hairpin on",
                *[f"link set {device}{c} up" for device in ("br", "back", "up", "echo")]]

    def port(self, c, device):
        return [f"link set {device} master br{c}",
                f"link set {device} type bridge_slave isolated on learning off",
                f"link set {device} up"]

    def shape_channel(self, c):
        return [f"qdisc add dev up{c} root tbf rate {self.mbit}mbit burst {self.burst} latency 200ms "
                f"overhead {self.overhead}"]

    def shape_host(self, _):
        return []
