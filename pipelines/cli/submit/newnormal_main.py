"""The file that ``spark-submit`` runs as the command `newnormal`; its arguments are those of the command.

It lies in a folder of its own: Python puts the folder of a file that it runs first on the module path, where the files
of other commands would hide modules of the same name, such as `dashboards`.
"""

from pipelines.cli.main import main

if __name__ == "__main__":
    main()
