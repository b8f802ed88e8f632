//! The files in `docker/` name metrics, labels and ports of the gateway: they must be there.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;

fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn json(path: &str) -> Value {
    serde_json::from_str(&read(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// All of Prometheus's expressions in the alert rules and the dashboard.
fn expressions() -> String {
    let dashboard = json("docker/dashboard.json");
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    let mut text = read("docker/rules.yaml");
    for target in targets {
        text.push('\n');
        text.push_str(target["expr"].as_str().unwrap());
    }
    text
}

#[test]
fn alerts_and_dashboard_ask_for_metrics_that_are_exported() {
    let (text, exporter) = (expressions(), read("gateway/src/metrics/exporter.rs"));
    let words = text.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    let is_metric = |word: &&str| word.starts_with("weir_") || word.starts_with("process_");
    let metrics: BTreeSet<&str> = words.filter(is_metric).collect();
    assert!(metrics.len() > 15, "{metrics:?}");
    for metric in metrics {
        assert!(exporter.contains(&format!("\"{metric}\"")), "{metric} is not exported");
    }
}

#[test]
fn alerts_and_dashboard_ask_for_labels_that_exist() {
    let (text, labels) = (expressions(), read("gateway/src/metrics/labels.rs"));
    let mut checked = 0;
    for label in ["reason", "kind", "protocol", "class", "resource"] {
        for operator in ["=", "=~", "!~", "!="] {
            for after in text.split(&format!("{label}{operator}\"")).skip(1) {
                let (values, _) = after.split_once('"').unwrap();
                for value in values.split('|') {
                    assert!(labels.contains(&format!("\"{value}\"")), "{label} is never {value}");
                    checked += 1;
                }
            }
        }
    }
    assert!(checked > 8, "{checked}");
}

/// A default port, from the reference that is made from the settings.
fn port(key: &str) -> String {
    let reference = read("docs/config.md");
    let row = reference.lines().find(|line| line.starts_with(&format!("| [`{key}`]"))).unwrap();
    let default = row.split('|').nth(4).unwrap().trim().trim_matches('`');
    default.rsplit_once(':').unwrap().1.to_owned()
}

#[test]
fn ports_are_the_defaults() {
    let (rtmp, http, admin) = (port("rtmp"), port("http"), port("admin"));
    let dockerfile = read("docker/Dockerfile");
    assert!(dockerfile.contains(&format!("EXPOSE {rtmp} 1936 {http} {admin}\n")));
    assert!(dockerfile.contains(&format!("/dev/tcp/127.0.0.1/{admin} ")));
    assert!(read("docker/nginx.conf").contains(&format!("server gateway:{http};")));
    assert!(read("docker/prometheus.yml").contains(&format!("[gateway:{admin}]")));

    let compose = read("docker/compose.yaml");
    let gateway = service(&compose, "gateway");
    assert!(gateway.contains(&format!("WEIR_ADMIN: 0.0.0.0:{admin}\n")));
    // Published are RTMP here and HTTP at the edge; the admin listener nowhere.
    assert_eq!(published(gateway), [format!("{rtmp}:{rtmp}")]);
    assert_eq!(published(service(&compose, "edge")), [format!("{http}:{http}")]);
    let prometheus = published(service(&compose, "prometheus"));
    assert!(prometheus.iter().all(|port| port.starts_with("127.0.0.1:")), "{prometheus:?}");
}

/// One service's lines of the compose file: up to the empty line behind them.
fn service<'a>(compose: &'a str, name: &str) -> &'a str {
    let (_, rest) = compose.split_once(&format!("\n  {name}:\n")).unwrap();
    rest.split_once("\n\n").unwrap().0
}

fn published(service: &str) -> Vec<String> {
    let (_, rest) = service.split_once("    ports:\n").unwrap();
    let items = rest.lines().map_while(|line| line.strip_prefix("      - "));
    items.map(|item| item.trim_matches('"').to_owned()).collect()
}

#[test]
fn the_seccomp_profile_refuses_all_but_its_list_and_lists_io_uring() {
    let profile = json("docker/seccomp.json");
    assert_eq!(profile["defaultAction"], "SCMP_ACT_ERRNO");
    let mut allowed = BTreeSet::new();
    for rule in profile["syscalls"].as_array().unwrap() {
        let names = rule["names"].as_array().unwrap().iter().map(|name| name.as_str().unwrap());
        if rule["action"] == "SCMP_ACT_ALLOW" {
            allowed.extend(names);
        }
    }
    for call in ["io_uring_setup", "io_uring_enter", "io_uring_register", "execve", "futex"] {
        assert!(allowed.contains(call), "{call} is refused");
    }
    for call in ["mount", "unshare", "setns", "ptrace", "bpf", "keyctl", "kexec_load", "clone3"] {
        assert!(!allowed.contains(call), "{call} is allowed");
    }
    assert!(read("docker/compose.yaml").contains("- seccomp:seccomp.json\n"));
}
