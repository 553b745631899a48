def run(plot):
    return {}
