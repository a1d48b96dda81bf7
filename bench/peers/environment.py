"""Makes the virtual environment that the peers run in. Installs only what is missing."""

import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


def requirement_versions(name):
    """{"onnx": "1.2.3", ...} of a requirements file."""
    lines = (HERE / name).read_text().splitlines()
    return dict(line.split("==") for line in lines if "==" in line and not line.startswith("#"))


def has_versions(python, versions):
    """True where every module imports and has the pinned version (a local suffix may follow)."""
    code = "import importlib\n" + "\n".join(
        f"assert importlib.import_module({module!r}).__version__.split('+')[0] == {version!r}"
        for module, version in versions.items()
    )
    return subprocess.run([python, "-c", code], capture_output=True).returncode == 0


def install(python, requirements, what, say):
    """True once the modules of a requirements file are there in their pinned versions."""
    versions = requirement_versions(requirements)
    if has_versions(python, versions):
        return True
    say(f"installing {what}")
    command = [python, "-m", "pip", "install", "--disable-pip-version-check", "--no-compile"]
    result = subprocess.run(
        [*command, "-r", str(HERE / requirements)], capture_output=True, text=True
    )
    if result.returncode != 0:
        say((result.stderr or result.stdout).strip())
    return has_versions(python, versions)


def prepare(venv, wants_torch, say):
    """Returns (python, peers that can be used, why the others can't)."""
    python = str(venv / "bin" / "python")
    if not (venv / "bin" / "pip").exists():
        say(f"creating {venv.name}/ for the peers")
        made = subprocess.run(
            [sys.executable, "-m", "venv", str(venv)], capture_output=True, text=True
        )
        if made.returncode != 0:
            why = "no virtual environment (on Debian: apt-get install python3-venv)"
            return None, [], {"onnxruntime": why, "torch": why}
    usable, missing = [], {}
    if install(python, "requirements.txt", "ONNX Runtime", say):
        usable.append("onnxruntime")
    else:
        missing["onnxruntime"] = "could not be installed; see bench/peers/requirements.txt"
        return python, [], dict(missing, torch="needs numpy, which could not be installed")
    if not wants_torch:
        missing["torch"] = "left out by --no-torch"
    elif install(python, "requirements_torch.txt", "PyTorch (3 GB; --no-torch leaves it out)", say):
        usable.append("torch")
    else:
        missing["torch"] = "could not be installed; see bench/peers/requirements_torch.txt"
    return python, usable, missing
