use std::sync::Arc;
use std::time::SystemTime;

use metrics::{counter, describe_counter, describe_gauge, gauge, with_local_recorder};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle, PrometheusRecorder};

use super::{Counter, Counters, Family, Gauge, Label};
use crate::certificates::Certificates;
use crate::process::{self, Process};

/// Renders all cores' counts in Prometheus's text format.
pub struct Exporter {
    recorder: PrometheusRecorder,
    handle: PrometheusHandle,
    cores: Vec<Arc<Counters>>,
    process: Arc<Process>,
}

impl Exporter {
    #[must_use]
    pub fn new(cores: Vec<Arc<Counters>>, process: Arc<Process>) -> Self {
        let recorder = PrometheusBuilder::new().build_recorder();
        let handle = recorder.handle();
        Self { recorder, handle, cores, process }
    }

    /// Prometheus's text format, version 0.0.4.
    #[must_use]
    pub fn render(&self) -> String {
        // The recorder is this exporter's own, not the process's: two in one test don't mix.
        with_local_recorder(&self.recorder, || {
            record_process(&self.process);
            Totals(&self.cores).record();
        });
        self.handle.render()
    }
}

fn record_process(process: &Process) {
    fact("weir_build_info", "1, with the version as label.", &[("version", process::VERSION)], 1.0);
    let backend = [("backend", process.io_backend)];
    fact("weir_io_backend_info", "1, with the active I/O backend as label.", &backend, 1.0);
    fact("weir_cores", "Threads that carry media.", &[], process.cpus.len() as f64);
    let uptime = process.uptime().as_secs_f64();
    fact("weir_uptime_seconds", "Seconds since the process started.", &[], uptime);
    let arena = process.arena.usage();
    fact("weir_arena_budget_bytes", "memory.max", &[], arena.max_bytes as f64);
    fact("weir_arena_bytes", "Bytes of media in memory.", &[], arena.in_use_bytes as f64);
    let about = "Bytes of free media blocks that are kept resident.";
    fact("weir_arena_warm_bytes", about, &[], arena.warm_bytes as f64);
    fact("weir_arena_refused", "Reservations over memory.max.", &[], arena.refused as f64);
    if let Some(certificates) = &process.certificates {
        record_certificates(certificates);
    }
    let started = process.started_at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let about = "When the process started, in seconds since 1970.";
    fact("process_start_time_seconds", about, &[], started.as_secs_f64());
    for (name, about, value) in [
        ("process_resident_memory_bytes", "Bytes in memory.", process::rss_bytes()),
        ("process_open_fds", "Open file descriptors.", process::open_fds()),
        ("process_max_fds", "Soft limit of open file descriptors.", process::fd_limit()),
    ] {
        if let Some(value) = value {
            fact(name, about, &[], value as f64);
        }
    }
}

fn record_certificates(certificates: &Certificates) {
    let expires = certificates.facts().expires;
    let expires = expires.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let about = "When the certificate of RTMPS expires, in seconds since 1970.";
    fact("weir_certificate_expiry_seconds", about, &[], expires.as_secs_f64());
    let about = "Times that a new certificate was no good, so that the old one stayed.";
    describe_counter!("weir_certificate_failures_total", about);
    counter!("weir_certificate_failures_total").absolute(certificates.failures());
}

fn fact(
    name: &'static str,
    about: &'static str,
    labels: &[(&'static str, &'static str)],
    value: f64,
) {
    describe_gauge!(name, about);
    gauge!(name, labels).set(value);
}

/// The cores' counts added up.
struct Totals<'a>(&'a [Arc<Counters>]);

impl Totals<'_> {
    fn record(&self) {
        self.levels("weir_connections", "Open connections.", |c| &c.connections);
        self.counts("weir_connections_total", "Accepted connections.", |c| &c.accepted);
        self.counts("weir_refused_total", "Peers that were not let in.", |c| &c.refused);
        self.counts("weir_closed_total", "Connections that the gateway ended.", |c| &c.closed);
        self.level("weir_streams", "Streams, live or waiting for their publisher.", |c| &c.streams);
        self.level("weir_publishers", "Sessions that publish.", |c| &c.publishers);
        self.levels("weir_players", "Players; of HLS those seen lately.", |c| &c.players);
        self.counts("weir_bytes_in_total", "Bytes received.", |c| &c.bytes_in);
        self.counts("weir_bytes_out_total", "Bytes sent.", |c| &c.bytes_out);
        let about = "Pictures and audio frames received from publishers.";
        self.counts("weir_access_units_total", about, |c| &c.access_units);
        let about = "Media messages of publishers that were passed over.";
        self.counts("weir_skipped_total", about, |c| &c.skipped);
        let about = "Steps of publishers' clocks that were not taken as they came.";
        self.counts("weir_time_repairs_total", about, |c| &c.time_repairs);
        let about = "Access units of publishers that no HLS part holds.";
        self.counts("weir_hls_dropped_total", about, |c| &c.hls_dropped);
        let about = "HLS segments that begin without a keyframe: publishers' come too late.";
        self.count("weir_cuts_without_keyframe_total", about, |c| &c.cuts_without_keyframe);
        let about = "Slow players moved on to the newest keyframe.";
        self.count("weir_player_jumps_total", about, |c| &c.player_jumps);
        self.levels("weir_pushes", "Streams to other servers.", |c| &c.pushes);
        self.levels("weir_pulls", "Streams from other servers.", |c| &c.pulls);
        let about = "Connections of pushes and pulls that came to nothing, or ended.";
        self.counts("weir_relay_failures_total", about, |c| &c.relay_failures);
        let about = "Players' demands for absent streams that were not passed on.";
        self.counts("weir_pulls_refused_total", about, |c| &c.pulls_refused);
        self.counts("weir_hls_requests_total", "HLS requests.", |c| &c.hls_requests);
        self.counts("weir_http_responses_total", "HTTP responses.", |c| &c.http_responses);
    }

    fn sum(&self, value: impl Fn(&Counters) -> u64) -> u64 {
        self.0.iter().map(|counters| value(counters)).fold(0, u64::wrapping_add)
    }

    fn count(&self, name: &'static str, about: &'static str, pick: fn(&Counters) -> &Counter) {
        describe_counter!(name, about);
        counter!(name).absolute(self.sum(|counters| pick(counters).get()));
    }

    fn level(&self, name: &'static str, about: &'static str, pick: fn(&Counters) -> &Gauge) {
        describe_gauge!(name, about);
        gauge!(name).set(self.sum(|counters| pick(counters).get()) as f64);
    }

    fn counts<L: Label, const N: usize>(
        &self,
        name: &'static str,
        about: &'static str,
        pick: fn(&Counters) -> &Family<Counter, L, N>,
    ) {
        describe_counter!(name, about);
        for label in L::ALL {
            let sum = self.sum(|counters| pick(counters).of(*label).get());
            counter!(name, L::NAME => label.value()).absolute(sum);
        }
    }

    fn levels<L: Label, const N: usize>(
        &self,
        name: &'static str,
        about: &'static str,
        pick: fn(&Counters) -> &Family<Gauge, L, N>,
    ) {
        describe_gauge!(name, about);
        for label in L::ALL {
            let sum = self.sum(|counters| pick(counters).of(*label).get());
            gauge!(name, L::NAME => label.value()).set(sum as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::metrics::{Refused, Transport};

    fn exporter(cores: &[Arc<Counters>]) -> Exporter {
        let process = Process {
            started: Instant::now(),
            started_at: SystemTime::UNIX_EPOCH + Duration::from_secs(5),
            io_backend: "epoll",
            io_note: None,
            cpus: vec![0, 1],
            arena: crate::io::Arena::reserve(1 << 30).unwrap(),
            certificates: None,
        };
        Exporter::new(cores.to_vec(), Arc::new(process))
    }

    #[test]
    fn cores_are_added_up() {
        let cores = [Arc::<Counters>::default(), Arc::default()];
        let exporter = exporter(&cores);
        for (round, expected) in [(1, "5"), (2, "10")] {
            cores[0].refused.of(Refused::AddressLimit).add(2);
            cores[1].refused.of(Refused::AddressLimit).add(3);
            cores[1].connections.of(Transport::Rtmp).set(7);
            let text = exporter.render();
            let line = format!("weir_refused_total{{reason=\"address_limit\"}} {expected}\n");
            assert!(text.contains(&line), "round {round}: {text}");
            assert!(text.contains("weir_connections{protocol=\"rtmp\"} 7\n"), "{text}");
        }
    }

    #[test]
    fn every_series_exists_from_the_start_and_is_described() {
        let text = exporter(&[Arc::default()]).render();
        for line in [
            "weir_build_info{version=\"",
            "weir_io_backend_info{backend=\"epoll\"} 1\n",
            "weir_cores 2\n",
            "process_start_time_seconds 5\n",
            "weir_players{protocol=\"ll_hls\"} 0\n",
            "weir_http_responses_total{class=\"5xx\"} 0\n",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
        let names = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        for name in names.filter_map(|line| line.split(['{', ' ']).next()) {
            assert!(text.contains(&format!("# HELP {name} ")), "{name}");
            assert!(text.contains(&format!("# TYPE {name} ")), "{name}");
        }
    }
}
