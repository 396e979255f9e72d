# The library, the command ooc and the servers, for Spack 1.0 or later.  The sources are a checkout.  In it, with an
# environment of Spack active:
#
#   spack repo add packaging/spack/spack_repo/oocarray
#   spack add oocarray@main
#   spack develop --path "$PWD" oocarray@main
#   spack install
#
# For the Python package use pip (python/README.md).
from spack_repo.builtin.build_systems.cmake import CMakePackage

from spack.package import *


class Oocarray(CMakePackage):
    """Arrays larger than memory: a C++20 template whose elements live in files that are striped
    over disks or servers, within a memory budget, for one process or the ranks of an MPI program."""

    license("BSD-3-Clause")

    version("main")  # no address: `spack develop` gives the sources

    variant("shared", default=True, description="Shared libraries")
    variant("mpi", default=True, description="oocarray::mpi, for the ranks of an MPI program")
    variant("remote", default=True, description="The client of servers, for ooc: URLs")
    variant("tools", default=True, when="+remote", description="The command ooc")
    variant("servers", default=True, when="+remote", description="ooc-metad and ooc-iod")
    variant("hdf5", default=False, when="+tools", description="HDF5 in `ooc import` and `ooc export`")
    variant("mount", default=False, when="+tools", description="`ooc mount`, by FUSE")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("pkgconfig", type="build")

    depends_on("sqlite@3.20:")
    depends_on("spdlog@1.10:")
    depends_on("liburing@2.3:")
    depends_on("isa-l@2.30:")
    # FindProtobuf, which CMakeLists.txt uses, does not know that later versions need abseil.
    depends_on("protobuf@21")
    depends_on("libsodium@1.0.18:", when="+remote")
    depends_on("openssl@3:", when="+remote")
    depends_on("boost@1.81:", when="+remote")
    depends_on("boost+program_options", when="+tools")
    depends_on("boost+program_options", when="+servers")
    depends_on("mpi@3.1:", when="+mpi")
    depends_on("nlohmann-json@3.11:", when="+tools")
    depends_on("libpng", when="+tools")
    depends_on("hdf5@1.10: +hl ~mpi", when="+hdf5")
    depends_on("libfuse@3.12:", when="+mount")
    depends_on("eigen@3.4:3")  # oocarray/eigen.hpp and oocarray/algorithm/multiply.hpp include it

    requires("platform=linux", msg="oocarray uses io_uring and userfaultfd, which are Linux's")
    conflicts("%gcc@:11", msg="oocarray needs C++20 of gcc 12 or later")
    conflicts("%clang@:14", msg="oocarray needs C++20 of clang 15 or later")

    def cmake_args(self):
        parts = {"MPI": "mpi", "REMOTE": "remote", "TOOLS": "tools", "SERVERS": "servers",
                 "HDF5": "hdf5", "MOUNT": "mount"}
        args = [self.define_from_variant("BUILD_SHARED_LIBS", "shared")]
        # A variant that does not apply counts as off.
        args += [self.define(f"OOCARRAY_BUILD_{key}", self.spec.satisfies(f"+{variant}"))
                 for key, variant in parts.items()]
        args += [self.define(f"OOCARRAY_BUILD_{key}", False)
                 for key in ("EXAMPLES", "BENCH", "TESTS", "PYTHON", "MPIIO")]
        return args

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def check_installed(self):
        if self.spec.satisfies("+tools"):
            Executable(self.prefix.bin.ooc)("--version")
