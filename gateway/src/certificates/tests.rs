use std::path::Path;
use std::time::Duration;

use rcgen::{CertificateParams, KeyPair};
use tempfile::TempDir;

use super::*;

const DAY: Duration = Duration::from_secs(24 * 3600);

/// A certificate for `name` and its key, as PEM.
fn made(name: &str) -> (String, String) {
    made_with(name, |_| {})
}

fn made_with(name: &str, change: impl FnOnce(&mut CertificateParams)) -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new([name.to_owned(), "192.0.2.7".to_owned()]).unwrap();
    change(&mut params);
    (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
}

fn put(dir: &Path, (certificate, key): &(String, String)) -> Tls {
    let (at, key_at) = (dir.join("cert.pem"), dir.join("key.pem"));
    std::fs::write(&at, certificate).unwrap();
    std::fs::write(&key_at, key).unwrap();
    Tls { certificate: Some(at), key: Some(key_at) }
}

fn opened(pem: &(String, String)) -> (TempDir, Result<Arc<Certificates>, CertificateError>) {
    let dir = tempfile::tempdir().unwrap();
    let opened = Certificates::open(&put(dir.path(), pem));
    (dir, opened.map(|opened| opened.expect("files are named")))
}

#[test]
fn without_files_there_is_none() {
    assert!(Certificates::open(&Tls::default()).unwrap().is_none());
}

#[test]
fn a_good_pair_tells_its_names_and_its_end() {
    let (_dir, certificates) = opened(&made_with("stream.example", |params| {
        params.not_after = rcgen::date_time_ymd(2999, 1, 2);
    }));
    let certificates = certificates.unwrap();
    let facts = certificates.facts();
    assert_eq!(facts.names, ["stream.example", "192.0.2.7"]);
    let expires = humantime::format_rfc3339_seconds(facts.expires).to_string();
    assert_eq!(expires, "2999-01-02T00:00:00Z");
    certificates.server_config().unwrap();
}

#[test]
fn what_is_wrong_is_one_sentence_with_a_remedy() {
    let good = made("a.example");
    let other = made("b.example");
    let encrypted =
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let expired = made_with("c.example", |params| {
        (params.not_before, params.not_after) =
            (rcgen::date_time_ymd(2001, 1, 1), rcgen::date_time_ymd(2002, 1, 1));
    });
    let early = made_with("d.example", |params| {
        params.not_before = rcgen::date_time_ymd(2998, 1, 1);
        params.not_after = rcgen::date_time_ymd(2999, 1, 1);
    });
    for (pem, words) in [
        ((String::new(), good.1.clone()), ["holds no certificate", "fullchain.pem"]),
        ((good.1.clone(), good.1.clone()), ["holds no certificate", "cert.pem"]),
        ((broken.to_owned(), good.1.clone()), ["cannot be used", "get a new one"]),
        ((good.0.clone(), String::new()), ["holds no private key", "key.pem"]),
        ((good.0.clone(), encrypted.to_owned()), ["holds no private key", "passphrase"]),
        ((good.0.clone(), other.1), ["does not belong to", "key.pem"]),
        (expired, ["expired on 2002-01-01", "get a new one"]),
        (early, ["not valid before 2998-01-01", "clock"]),
        (("x".repeat(2 << 20), good.1), ["larger than", "tls.certificate"]),
    ] {
        let (_dir, result) = opened(&pem);
        let sentence = result.unwrap_err().to_string();
        for word in words {
            assert!(sentence.contains(word), "{word} in {sentence}");
        }
        assert!(!sentence.contains('\n'), "{sentence}");
    }
    let absent = Tls { certificate: Some("/nonexistent/c".into()), key: Some("/k".into()) };
    let sentence = Certificates::open(&absent).unwrap_err().to_string();
    assert!(sentence.contains("tls.certificate /nonexistent/c: No such file"), "{sentence}");
}

#[test]
fn changed_files_are_read_once_they_rest_and_only_good_ones_count() {
    let (dir, certificates) = opened(&made("old.example"));
    let certificates = certificates.unwrap();
    let name = || certificates.facts().names[0].clone();
    certificates.look();
    certificates.look();
    assert_eq!((name().as_str(), certificates.failures()), ("old.example", 0));

    // Half of a pair, and the next look finds the other half there: nothing failed.
    let new = made("new.example");
    std::fs::write(dir.path().join("cert.pem"), &new.0).unwrap();
    certificates.look();
    put(dir.path(), &new);
    age(dir.path(), DAY);
    certificates.look();
    assert_eq!(name(), "old.example");
    certificates.look();
    assert_eq!((name().as_str(), certificates.failures()), ("new.example", 0));

    // A broken one is told once, and replaced as soon as a good one is there.
    std::fs::write(dir.path().join("cert.pem"), "no PEM").unwrap();
    for _ in 0..4 {
        certificates.look();
    }
    assert_eq!((name().as_str(), certificates.failures()), ("new.example", 1));
    certificates.reload();
    assert_eq!(certificates.failures(), 2);
    put(dir.path(), &made("last.example"));
    certificates.reload();
    assert_eq!((name().as_str(), certificates.failures()), ("last.example", 2));
}

/// Files that are written within one tick of the file system's clock can look alike.
fn age(dir: &Path, by: Duration) {
    for file in ["cert.pem", "key.pem"] {
        let file = std::fs::File::options().append(true).open(dir.join(file)).unwrap();
        file.set_modified(SystemTime::now() - by).unwrap();
    }
}
