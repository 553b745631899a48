-- The jobs of tests/benchmarks/yahoo.py in Flink SQL, on the same topics. flink_yahoo.py fills in BOOTSTRAP and PREFIX.
CREATE TABLE events (
  `time` BIGINT NOT NULL, ad STRING NOT NULL, event STRING NOT NULL,
  happened AS TO_TIMESTAMP_LTZ(`time`, 3),
  WATERMARK FOR happened AS happened - INTERVAL '1' SECOND
) WITH (
  'connector' = 'kafka', 'topic' = 'PREFIXad-events', 'properties.bootstrap.servers' = 'BOOTSTRAP',
  'scan.startup.mode' = 'earliest-offset', 'format' = 'json', 'json.ignore-parse-errors' = 'true'
);
-- Only the table is ever idle: events must not be, or a partition that is read late loses what it holds.
CREATE TABLE ads (
  ad STRING NOT NULL, campaign STRING, `time` BIGINT,
  since AS TO_TIMESTAMP_LTZ(`time`, 3),
  WATERMARK FOR since AS since,
  PRIMARY KEY (ad) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'PREFIXads', 'properties.bootstrap.servers' = 'BOOTSTRAP',
  'key.format' = 'raw', 'value.format' = 'json', 'value.json.ignore-parse-errors' = 'true',
  'scan.watermark.idle-timeout' = '1 s'
);
CREATE TABLE campaign_views (
  campaign STRING, window_start TIMESTAMP(3), window_end TIMESTAMP(3), `views` BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'PREFIXflink-campaign-views', 'properties.bootstrap.servers' = 'BOOTSTRAP',
  'format' = 'json', 'sink.delivery-guarantee' = 'exactly-once', 'sink.transactional-id-prefix' = 'PREFIXflink',
  'properties.transaction.timeout.ms' = '600000'
);
CREATE TEMPORARY VIEW viewed AS
SELECT events.happened, ads.campaign
FROM events JOIN ads FOR SYSTEM_TIME AS OF events.happened ON events.ad = ads.ad
WHERE events.event = 'view';
INSERT INTO campaign_views
SELECT campaign, window_start, window_end, COUNT(*)
FROM TUMBLE(TABLE viewed, DESCRIPTOR(happened), INTERVAL '10' SECOND)
GROUP BY campaign, window_start, window_end;
