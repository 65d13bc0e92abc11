"""What the artefacts are made of besides our own code: one row for each thing that is compiled or linked in.

NOTICES and the SBOM are expanded from here. `package` is the Debian or Ubuntu package whose version it has and whose copyright
file is quoted; of what comes with the compiler, `package` is empty and the version is the compiler's. `source` is the source
package to be compiled for the target, for what is not headers alone.
"""
import collections

Component = collections.namedtuple("Component", "name package source licence home inside")

COMPONENTS = (
    Component("spdlog", "libspdlog-dev", "", "MIT", "https://github.com/gabime/spdlog", "core"),
    Component("fmt", "libfmt-dev", "", "MIT", "https://github.com/fmtlib/fmt", "core"),
    Component("nlohmann-json", "nlohmann-json3-dev", "", "MIT", "https://github.com/nlohmann/json", "core and command"),
    Component("CLI11", "libcli11-dev", "", "BSD-3-Clause", "https://github.com/CLIUtils/CLI11", "command"),
    Component("zstd", "libzstd-dev", "libzstd", "BSD-3-Clause", "https://github.com/facebook/zstd", "core and command"),
    Component("zlib", "zlib1g-dev", "zlib", "Zlib", "https://zlib.net", "command"),
    Component("Dygraphs", "libjs-dygraphs", "", "MIT", "https://dygraphs.com", "command, for its pages"),
    Component("libc++, libc++abi, libunwind and compiler-rt", "", "", "Apache-2.0 WITH LLVM-exception", "https://llvm.org",
              "core and command"),
)
