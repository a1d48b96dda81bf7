"""vLLM's plug-in: attention backend "PAGODA" (`--attention-backend PAGODA`).

The package's entry point in the group vllm.general_plugins calls register() in every process of
vLLM. The backend itself is pagoda.vllm_backend, which vLLM imports when it is selected.
"""

from __future__ import annotations

__all__ = ["register"]


def register() -> None:
    """Registers the backend. May be called again. RuntimeError: vLLM is older than 0.32."""
    try:
        from vllm.v1.attention.backends.registry import AttentionBackendEnum, register_backend
    except ImportError as error:
        raise RuntimeError("pagoda's attention backend needs vLLM 0.32 or later") from error
    if not hasattr(AttentionBackendEnum, "register"):
        raise RuntimeError("pagoda's attention backend needs vLLM 0.32 or later")
    # A new name adds a member; a second one of that name is an error.
    name = AttentionBackendEnum.__members__.get("PAGODA", "PAGODA")
    register_backend(name, "pagoda.vllm_backend.PagodaBackend")
