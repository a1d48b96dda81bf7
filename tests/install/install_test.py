"""Installs the build, then builds and runs programs that find it as a package: a C++ program, a C
program through pkg-config and through CMake, and, with the emulator and the headers for functors
installed on request, programs that need them.

usage: install_test.py CMAKE BUILD_DIR C_PROGRAM C_COMPILER CXX_COMPILER
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent


def run(*command, **environment):
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | environment)
    if done.returncode != 0:
        sys.exit(f"failed ({done.returncode}): {' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


def expect(what, expected, actual):
    if expected != actual:
        sys.exit(f"{what}: expected {expected!r}, got {actual!r}")
    print(f"{what}: {actual!r}")


def expect_short(program, limit):
    lines = program.read_text().count("\n")
    if lines >= limit:
        sys.exit(f"{program} has {lines} lines; it must have fewer than {limit}")


class Installation:
    def __init__(self, cmake, build, folder):
        self.cmake, self.build, self.folder, self.prefix = cmake, build, folder, f"{folder}/prefix"

    def install(self, *options):
        run(self.cmake, "--install", self.build, "--prefix", self.prefix, *options)

    def files(self, pattern):
        return sorted(pathlib.Path(self.prefix).rglob(pattern))

    def run_cmake_project(self, source, language, compiler):
        """Configures, builds and runs the project in the folder `source`, named like it."""
        out = f"{self.folder}/build_{source.name}"
        run(self.cmake, "-G", "Ninja", "-S", str(source), "-B", out, "-DCMAKE_BUILD_TYPE=Release",
            f"-DCMAKE_PREFIX_PATH={self.prefix}", f"-DCMAKE_{language}_COMPILER={compiler}")
        found = [line for line in open(f"{out}/CMakeCache.txt") if line.startswith("pagoda_DIR")]
        if not found or self.prefix not in found[0]:
            sys.exit(f"find_package found another pagoda: {found}")
        run(self.cmake, "--build", out)
        return run(f"{out}/{source.name}")

    def run_with_pkg_config(self, program, compiler):
        config = self.files("pagoda.pc")[0].parent
        flags = run("pkg-config", "--cflags", "--libs", "pagoda", PKG_CONFIG_PATH=str(config)).split()
        binary = f"{self.folder}/with_pkg_config"
        run(compiler, "-std=c11", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror", str(program),
            "-o", binary, *flags)
        return run(binary, LD_LIBRARY_PATH=str(config.parent))


def main():
    cmake, build, c_program, c_compiler, cxx_compiler = sys.argv[1:]
    c_program = pathlib.Path(c_program)
    expect_short(HERE / "consumer/main.cpp", 20)
    expect_short(c_program, 40)
    with tempfile.TemporaryDirectory() as folder:
        here = Installation(cmake, build, folder)
        here.install()
        # What is for users, and nothing of tests.
        expect("libraries", ["libpagoda.a", "libpagoda.so", "libpagoda.so.0", "libpagoda.so.0.x"],
               [re.sub(r"0\.\d+\.\d+$", "0.x", path.name) for path in here.files("lib*.*")])
        expect("headers of the emulator", [], here.files("emulator.hpp"))
        expect("C++ through CMake", "1.5", here.run_cmake_project(HERE / "consumer", "CXX", cxx_compiler))

        expect("C through pkg-config", "3 2", here.run_with_pkg_config(c_program, c_compiler))
        project = pathlib.Path(folder) / "c_consumer"
        shutil.copytree(HERE / "c_consumer", project)
        shutil.copy(c_program, project / "main.c")
        expect("C through CMake", "3 2", here.run_cmake_project(project, "C", c_compiler))

        here.install("--component", "emulator")
        answer = here.run_cmake_project(HERE / "emulated_consumer", "CXX", cxx_compiler)
        expect("the emulator", ["emu:sm90: 640 values", "emu:sm100: 640 values", "0 wrong"],
               answer.splitlines())

        here.install("--component", "functors")
        answer = here.run_cmake_project(HERE / "functor_consumer", "CXX", cxx_compiler)
        expect("a functor", ["cpu: 0 wrong", "emu:sm80: 0 wrong"], answer.splitlines())


if __name__ == "__main__":
    main()
