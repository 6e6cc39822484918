"""Transformer models built on graph.py: GGUF files, tokenizers, the llama architecture, sampling, generation."""
