"""What telemetry says of where machines are: pods on nodes, containers in pods, replicas of workloads, calls."""
