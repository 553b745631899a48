"""The rule by which a user says which metrics are counters, for formats that do not say it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from pipelines.contracts.globs import compiled
from pipelines.contracts.settings.input import InputSettings, names
from pipelines.formats.remembering import remembered

_IF = ("Octets", "UcastPkts", "NUcastPkts", "MulticastPkts", "BroadcastPkts", "Discards", "Errors", "UnknownProtos")
_KNOWN = (
    *(f"*.if{hc}{way}{what}" for hc in ("", "HC") for way in ("In", "Out") for what in _IF),
    *(f"net.{what}" for what in ("bytes_*", "packets_*", "err_*", "drop_*", "icmp_*", "icmpmsg_*", "ip_*", "udp_*")),
    *(f"net.tcp_{what}" for what in ("activeopens", "passiveopens", "attemptfails", "estabresets", "inerrs",
                                     "incsumerrors", "insegs", "outrsts", "outsegs", "retranssegs")),
    *(f"diskio.{what}" for what in ("read*", "write*", "merged_*", "io_time", "weighted_io_time")),
    *(f"kernel.{what}" for what in ("context_switches", "interrupts", "processes_forked", "disk_pages_*")),
    *("swap.in", "swap.out", "cpu.time_*", "kernel_vmstat.pg*", "kernel_vmstat.pswp*", "kernel_vmstat.oom_kill"),
    *("docker_container_net.rx_*", "docker_container_net.tx_*", "docker_container_blkio.io_service*"),
    *(f"docker_container_cpu.{what}" for what in ("usage_total", "usage_in_*", "usage_system", "throttling_*")),
    *(f"docker_container_mem.{what}" for what in ("pg*", "total_pg*")),
    *(f"kubernetes_*.{what}" for what in ("rx_bytes", "tx_bytes", "rx_errors", "tx_errors", "cpu_usage_core_nano*")),
    *(f"procstat.{what}" for what in ("cpu_time_*", "read_*", "write_*", "*_context_switches", "*_faults")),
    *(f"redis.{what}" for what in ("total_connections_*", "total_commands_*", "total_net_*", "total_reads_*",
                                   "total_writes_*", "total_error_*", "rejected_connections", "expired_keys",
                                   "evicted_keys", "keyspace_hits", "keyspace_misses", "used_cpu_*", "sync_*")),
    *("redis_cmdstat.calls", "redis_cmdstat.usec"),
    *(f"mysql.{what}" for what in (
        "aborted_*", "bytes_*", "com_*", "commands_*", "connections", "created_tmp_*", "handler_*", "innodb_data_reads",
        "innodb_data_writes", "innodb_data_read", "innodb_data_written", "innodb_data_fsyncs", "innodb_rows_*",
        "innodb_buffer_pool_read*", "innodb_buffer_pool_write_requests", "innodb_buffer_pool_wait_free",
        "innodb_log_w*", "innodb_os_log_written", "innodb_pages_*", "innodb_row_lock_time", "innodb_row_lock_waits",
        "key_read*", "key_write*", "opened_*", "qcache_hits", "qcache_inserts", "qcache_not_cached", "queries",
        "questions", "select_*", "slow_queries", "sort_*", "table_locks_*", "threads_created")),
    *(f"nginx.{what}" for what in ("accepts", "handled", "requests")),
    *(f"apache.{what}" for what in ("TotalAccesses", "TotalkBytes")),
    *(f"postgresql.{what}" for what in ("xact_*", "blks_*", "tup_*", "temp_*", "deadlocks", "conflicts", "blk_*_time")),
    *(f"memcached.{what}" for what in ("bytes_read", "bytes_written", "cmd_*", "get_*", "evictions", "total_*")),
    *(f"haproxy.{what}" for what in ("bin", "bout", "stot", "req_tot", "ereq", "econ", "eresp", "http_response.*",
                                     "wredis", "wretr", "dreq", "dresp", "cli_abort", "srv_abort")),
    *("node_vmstat_pg*", "node_vmstat_pswp*", "node_vmstat_oom_kill", "node_netstat_*_In*", "node_netstat_*_Out*"),
    *("node_netstat_TcpExt_*", "node_netstat_Udp*_*", "node_netstat_Tcp_*Opens", "node_netstat_Tcp_RetransSegs"),
    *("node_cpu", "node_context_switches", "node_forks", "node_intr"),
    *(f"node_network_receive_{what}" for what in ("bytes", "compressed", "drop", "errs", "fifo", "frame", "multicast",
                                                  "packets")),
    *(f"node_network_transmit_{what}" for what in ("bytes", "carrier", "colls", "compressed", "drop", "errs", "fifo",
                                                   "packets")),
)  # fmt: skip
"""Counters of Telegraf's inputs, of SNMP, and of the node exporter, for formats and scrapes without types.

Source: the documentation of the inputs, and the files that they read.
"""


@dataclass(frozen=True)
class CounterRule:
    """Which metrics are counters.

    Args:
        globs: Those that a user says are; each is of a metric's name without its instance.
        well_known: Whether the well-known ones are, too; formats that name the kind of their metrics do not need that.

    >>> CounterRule().says("snmp.ifHCInOctets"), CounterRule().says("mem.used")
    (True, False)

    >>> CounterRule(("app.requests.*",)).says("app.requests.total"), CounterRule().says("app.requests.total")
    (True, False)
    """

    globs: tuple[str, ...] = names(InputSettings().counters)
    well_known: bool = True

    @cached_property
    def _all(self) -> tuple[str, ...]:
        return (*self.globs, *_KNOWN) if self.well_known else self.globs

    @cached_property
    def _any(self) -> re.Pattern[str]:
        return compiled(self._all)

    def says(self, name: str) -> bool:
        """Whether the rule makes a metric a counter."""
        return bool(self._all) and _says(self, name)

    def __hash__(self) -> int:
        return hash((self.globs, self.well_known))


@remembered(1 << 16, lambda rule, name: len(name))
def _says(rule: CounterRule, name: str) -> bool:
    return rule._any.match(name) is not None


COUNTERS = CounterRule()
"""The rule of the default settings."""
