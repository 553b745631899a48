def run(plot): return {}
