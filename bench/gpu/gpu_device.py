"""The GPU by nvidia-smi, and its clocks during a run. Changes no setting."""

import shutil
import statistics
import subprocess
import threading

FIELDS = {
    "name": "name",
    "driver": "driver_version",
    "compute_capability": "compute_cap",
    "memory_mib": "memory.total",
    "sm_mhz_at_rest": "clocks.sm",
    "sm_mhz_max": "clocks.max.sm",
    "memory_mhz": "clocks.mem",
    "power_limit_w": "power.limit",
}
SAMPLED = {"sm_mhz": "clocks.sm", "power_w": "power.draw", "temperature_c": "temperature.gpu"}
SAMPLE_MILLISECONDS = 500


def query(fields):
    """The first GPU's values as text; empty without a GPU."""
    if not shutil.which("nvidia-smi"):
        return {}
    command = [
        "nvidia-smi",
        f"--query-gpu={','.join(fields.values())}",
        "--format=csv,noheader,nounits",
        "--id=0",
    ]
    result = subprocess.run(command, capture_output=True, text=True)
    values = [value.strip() for value in result.stdout.strip().split(",")]
    return (
        dict(zip(fields, values)) if result.returncode == 0 and len(values) == len(fields) else {}
    )


def describe():
    return query(FIELDS)


def file_name(device):
    """"NVIDIA H200" -> "h200"."""
    words = device.get("name", "gpu").lower().replace("nvidia", "").split()
    return "-".join(words) or "gpu"


class ClockSampler:
    """Reads clocks, power and temperature twice a second until stop()."""

    def __init__(self):
        self.samples = []
        self.process = None
        if not shutil.which("nvidia-smi"):
            return
        command = [
            "nvidia-smi",
            f"--query-gpu={','.join(SAMPLED.values())}",
            "--format=csv,noheader,nounits",
            "--id=0",
            f"--loop-ms={SAMPLE_MILLISECONDS}",
        ]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            try:
                self.samples.append([float(value) for value in line.split(",")])
            except ValueError:  # "[N/A]"
                continue

    def stop(self):
        """{"sm_mhz": {"min", "median", "max"}, ..} of all samples; empty without any."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait()
            self.reader.join(timeout=5)
        columns = zip(*[sample for sample in self.samples if len(sample) == len(SAMPLED)])
        return {name: {"min": min(values), "median": statistics.median(values), "max": max(values)}
                for name, values in zip(SAMPLED, columns)}
