"""What tests and benchmarks stand on: real brokers as processes, toolchains, a raw protocol client."""
