cd /tmp/wt/sparkkit; export PYTHONPATH=$PWD POLARS_MAX_THREADS=1 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1; PY="nice -n 19 /work/main/.venv/bin/python"
