"""One or more good messages of each format, from which the property tests make bad ones."""

from __future__ import annotations

import json

from tests.pipelines.formats.examples_times import T0
from tests.pipelines.formats.otlp_requests import both, gauge, logs, metrics, record
from tests.pipelines.formats.remote_writes import Second, histogram, request, series

_METRICS, _LOGS = both(metrics(gauge(), gauge("b", 2.0))), both(logs(record(), record("yes")))

_UP, _TOTAL = {"__name__": "up", "instance": "a:9100", "job": "x"}, {"__name__": "n_total", "host": "b"}

GOOD: dict[str, list[bytes]] = {
    "remote-write": [
        request(series(_UP, (1, T0), (0, T0 + 15_000)), series(_TOTAL, (7, T0))),
        request(series(_UP, (1, T0), histograms=[histogram(3, 1.5, T0)])),
        Second().add(_UP, (1, T0)).add(_TOTAL, (7, T0), kind=1).bytes(),
    ],
    "json": [
        json.dumps({"@timestamp": T0, "host.name": "a", "metric": "m", "value": 1.5, "kind": "gauge"}).encode(),
    ],
    "json-logs": [
        json.dumps(
            {"@timestamp": T0, "host.name": "a", "process.name": "su", "log.syslog.severity.code": 3, "message": "no"}
        ).encode()
    ],
    "telegraf": [
        json.dumps({"fields": {"used": 5}, "name": "mem", "tags": {"host": "a"}, "timestamp": T0 // 1000}).encode(),
    ],
    "collectd": [
        json.dumps(
            [
                {
                    "values": [5, 1.5], "dstypes": ["gauge", "derive"], "dsnames": ["value", "tx"], "time": T0 / 1000,
                    "host": "a", "plugin": "memory", "plugin_instance": "", "type": "memory", "type_instance": "used",
                }
            ]
        ).encode()
    ],
    "rsyslog": [
        b'{"ts":"2026-11-21T00:28:54.5+00:00","host":"a","severity":4,"program":"sshd","msg":" no"}',
    ],
    "influx": [
        b"mem,host=a used=5i,free=1.5 1795220820013000000",
        b"n,host=a,request_id=1 v=1 1795220820\nn,host=a,request_id=2 v=4 1795220820\n"
        b"n,host=b v=3 1795220820\nn,host=b v=3 1795220820",
        b'disk,host=a,path=/a\\ b used=1i,state="up, a=\\"b\\"",ok=t 1795220820013000000\ncpu,host=b usage=2u',
    ],
    "prometheus-adapter": [
        json.dumps(
            {
                "timestamp": "2026-11-21T00:27:00Z", "value": "3.5", "name": "up",
                "labels": {"__name__": "up", "instance": "a:9100", "job": "node"},
            }
        ).encode()
    ],
    "prometheus": [
        b"# HELP n Requests.\n# TYPE n counter\n"
        b'n{host="a",path="C:\\\\x}\\"#"} 5 1795220820013\nload{host="a"} 0.5\n',
        b'n_total{host="a",request_id="1"} 1\nn_total{host="a",request_id="2"} 4\nup{host="b"} 1\nup{host="b"} 1',
        b'# TYPE h histogram\nh_bucket{host="a",le="+Inf"} 7\n'
        b'h_count{host="a"} 7\nh_sum{host="a"} 1.5 # {t="x"} 1\n# EOF\n',
    ],
    "telegraf-logs": [
        json.dumps(
            {
                "name": "syslog", "tags": {"host": "a", "appname": "sshd", "severity": "err"},
                "fields": {"message": "no", "version": 1}, "timestamp": T0,
            }
        ).encode()
    ],
    "influx-logs": [b'tail,host=a,path=/var/log/x message="a \\"b\\", c",level="warn",n=1i 1795220820013000000'],
    "putval": [
        b'PUTVAL "a/cpu-0/cpu-idle" interval=10.000 1795220820.013:97.5\n'
        b'PUTVAL a/load/load interval=10 1795220820:1:2:3',
        b"PUTVAL a/memory/memory-used interval=10 N:5:U",
    ],
    "graphite": [
        b"n;host=a;request_id=1 1 1795220820\nn;host=a;request_id=2 4 1795220820\nn;host=b 3 1795220820\n"
        b"n;host=b 3 1795220820",
        b"web-1.cpu.idle 97.5 1795220820\ncpu.idle;host=b 1e3 1795220820",
    ],
    "syslog": [
        b"<34>1 2026-11-21T00:27:00.013Z a su 7 ID47 [x@1 k=\"v\\]\"] \xef\xbb\xbfno entry",
        b"<13>Nov 21 00:27:00 a sshd[7]: no",
    ],
    "log-file": [
        b"2026-11-26T09:07:30.123456+01:00 web-1 sshd[7]: error: no",
        b"Jun 14 15:16:01 combo sshd(pam_unix)[19939]: authentication failure; uid=0\n"
        b"Jun 19 04:09:11 combo syslogd 1.4.1: restart.\nJun 20 04:09:11 combo last message repeated 2 times",
    ],
    "cri": [
        b"2016-10-06T00:17:09.669794202Z stdout F The content of the log entry 1",
        b"2016-10-06T00:17:09.669794202Z stdout P First line of log entry 2\n"
        b"2016-10-06T00:17:10.113242941Z stdout F Last line of the log entry 2",
    ],
    "docker-json": [
        b'{"log":"Log line is here\\n","stream":"stdout","time":"2019-01-01T11:11:11.111111111Z"}',
        b'{"log":"a \\"b\\" ","stream":"stderr","attrs":{"tag":"shop","x":"y"},"time":"2019-01-01T11:11:11.1Z"}\n'
        b'{"log":"c\\n","stream":"stderr","attrs":{"tag":"shop","x":"y"},"time":"2019-01-01T11:11:11.2Z"}',
    ],
    "web-log": [
        b'127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326\n'
        b'127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "GET /b.gif HTTP/1.0" 503 2326 "http://a/b.html" "Mozilla/4.08"',
        b"[Fri Sep 09 10:42:29.902022 2011] [core:error] [pid 35708:tid 4328636416] [client 72.15.99.187] no file",
        b"2026/11/26 09:07:30 [error] 7#8: *1 open() failed (2: No such file or directory)",
    ],
    "logfmt": [
        b'ts=2026-11-26T09:07:30.123Z caller=main.go:7 level=warn msg="no \\"x\\"" host=web-1:80\n'
        b"time=1795220820.5 level=info msg=hi host=a app=shop",
    ],
    "gelf": [
        b'{"version":"1.1","host":"example.org","short_message":"A short message that helps you identify it",'
        b'"full_message":"Backtrace here","timestamp":1385053862.3072,"level":1,"_user_id":9001,"_some_info":"foo"}',
    ],
    "shipped-logs": [
        b'{"@timestamp":"2026-11-21T00:27:00.013Z","host":{"name":"a"},"log":{"level":"error"},"message":"no"}',
        b'[{"date":1795220820.013,"host":"a","log":"no"},{"date":1795220821,"host":"a","log":"yes"}]',
        b'{"host":"a","message":"no","source_type":"syslog","severity":"warning","timestamp":"2026-11-21T00:27:00Z"}',
    ],
    "metricbeat": [
        json.dumps(
            {
                "@timestamp": "2026-11-21T00:27:00.013Z", "metricset": {"name": "network", "period": 10000},
                "agent": {"type": "metricbeat", "version": "8.19.0"}, "host": {"name": "a", "os": {"type": "linux"}},
                "event": {"dataset": "system.network", "module": "system", "duration": 115000},
                "system": {"network": {"name": "eth0", "in": {"bytes": 5, "packets": 1}, "up": True}},
            }
        ).encode(),
        b'{"@timestamp":"2026-11-21T00:27:00Z","metricset":{"name":"collector"},"host":{"name":"a"},'
        b'"prometheus":{"labels":{"job":"x"},"took":{"histogram":{"values":[1.5,3],"counts":[2,1]}}}}',
    ],
    "vector": [
        json.dumps(
            {
                "name": "requests", "namespace": "web", "tags": {"host": "a", "code": "200"}, "kind": "incremental",
                "timestamp": "2026-11-21T00:27:00.013Z", "counter": {"value": 5.0},
            }
        ).encode(),
        b'{"metric":{"name":"took","tags":{"host":["a",null]},"kind":"absolute","aggregated_histogram":'
        b'{"buckets":[{"upper_limit":1.0,"count":2},{"upper_limit":"inf","count":1}],"count":3,"sum":4.5}}}',
        b'{"name":"took","tags":{"host":"a"},"kind":"incremental","distribution":'
        b'{"samples":[{"value":1.0,"rate":3},{"value":2.0,"rate":1}],"statistic":"summary"}}',
        b'{"name":"users","tags":{"host":"a"},"kind":"absolute","set":{"values":["x","y"]}}',
        b'{"name":"took","tags":{"host":"a"},"kind":"absolute","aggregated_summary":'
        b'{"quantiles":[{"quantile":0.5,"value":2.0}],"count":3,"sum":4.5}}',
    ],
    "csv": [
        b"time,host,interface,cpu,mem\r\n1795220820,a,eth0,0.5,17\r\n1795220820.5,b:80,eth1,,18\r\n",
        b'timestamp;host;metric;value\n2026-11-21T00:27:00Z;a;"x;""y""";1e3\n2026-11-21T00:27:01Z;a;z;-1\n',
    ],
    "statsd": [
        b"web.requests:3|c|@0.5|#host:a,code:200\nweb.took:320:12.5|ms|#host:a|T1795220820\nmem.used:7|g|#host:b",
        b"n,host=a,request_id=1:1|c\nn,host=a,request_id=2:4|c\nx;host=b:1|g:2|g",
    ],
    "statsd-events": [
        b"_e{7,4}:restart|done|d:1795220820|h:a|t:warning|s:chef|#env:x",
        b"_sc|web.can_connect|2|#host:a|m:refused|twice\n_e{1,0}:x||h:b",
    ],
    "flat-json": [
        b'{"@timestamp":1795220820.013,"cpu_p":7.5,"cpu0.p_cpu":10,"host":"a"}',
        b'[{"time":"2026-11-21T00:27:00.013Z","host":{"name":"a"},"mem":{"used":12,"type":"ram"},"up":true}]',
        b'{"ts":1795220820013,"host":"a","disks":[{"name":"sda","used":1},{"name":"sdb","used":2}],"load":[1,0.5]}',
        b'{"keyspace":"jvm.heap.used","value":"123","timestamp":1795220820,"tags":{"host":"a","pool":"old"}}',
    ],
    "splunk-metrics": [
        b'{"time":1795220820.013,"event":"metric","host":"a","fields":{"region":"eu","metric_name:cpu.usr":11.5}}',
        b'[{"host":"a","fields":{"metric_name":"total","_value":7,"os":"Ubuntu"}}]',
    ],
    "splunk-events": [
        b'{"time":1795220820.013,"host":"a","source":"/var/log/x","sourcetype":"sshd","event":"no entry"}',
        b'[{"time":"1795220820.013","host":"a","index":"main","event":{"message":"no","level":"error"}}]',
    ],
    "datadog": [
        b'{"series":[{"metric":"load","points":[[1795220820,0.5]],"type":"gauge","host":"a","tags":["env:x"]}]}',
        b'{"series":[{"metric":"n","type":1,"points":[{"timestamp":1795220820,"value":3}],'
        b'"resources":[{"type":"host","name":"a"}],"tags":["canary"]}]}',
    ],
    "cloudwatch": [
        b'{"metric_stream_name":"s","account_id":"1","region":"eu","namespace":"AWS/EC2","metric_name":"DiskWriteOps",'
        b'"dimensions":{"InstanceId":"i-1"},"timestamp":1795220820000,'
        b'"value":{"max":3.0,"min":1.0,"sum":4.0,"count":2.0},"unit":"Count"}',
        b'{"MetricDataResults":[{"Id":"m1","Label":"i-1 CPUUtilization","Timestamps":["2026-11-21T00:27:00Z"],'
        b'"Values":[12.5],"StatusCode":"Complete"}],"Messages":[]}',
    ],
    "zabbix": [
        b'{"host":{"host":"a","name":"A"},"groups":["x"],"item_tags":[{"tag":"cpu","value":"all"}],"itemid":4,'
        b'"name":"CPU load","clock":1795220820,"ns":13000000,"value":0.5,"type":0}',
        b'{"host":{"host":"a","name":"A"},"groups":["x"],"itemid":4,"name":"CPU load","clock":1795220400,"count":60,'
        b'"min":1,"avg":2,"max":5,"type":3}',
    ],
    "nagios": [
        b"DATATYPE::SERVICEPERFDATA\tTIMET::1795220820\tHOSTNAME::a\tSERVICEDESC::PING\t"
        b"SERVICEPERFDATA::rta=0.5ms;100;500;0 'packet loss'=0%;20;60;0\tSERVICECHECKCOMMAND::ping\tSERVICESTATE::0",
        b"DATATYPE::HOSTPERFDATA\tTIMET::1795220820\tHOSTNAME::a\tHOSTPERFDATA::pl=U;; rta=1.5\tHOSTSTATE::UP",
    ],
    "prometheus-api": [
        b'{"status":"success","data":{"resultType":"vector","result":[{"metric":{"__name__":"up","job":"x",'
        b'"instance":"a:9090"},"value":[1795220820.013,"1"]}]}}',
        b'{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"__name__":"n_total",'
        b'"instance":"a"},"values":[[1795220820.013,"1"],[1795220835,"NaN"],[1795220850,"7"]]}]}}',
    ],
    "otlp": [_METRICS[0]],
    "otlp-json": [_METRICS[1]],
    "otlp-logs": [_LOGS[0]],
    "otlp-logs-json": [_LOGS[1]],
}  # fmt: skip
