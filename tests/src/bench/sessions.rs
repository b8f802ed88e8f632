//! How quickly a publisher is let in: at first, and when its earlier session has died.

use std::time::{Duration, Instant};

use super::media::Media;
use super::publisher::Publisher;
use super::table::percentile;
use super::{Plan, Server, Table};

const START: &str = "from connect to NetStream.Publish.Start, one publisher at a time, names anew";
const TAKEOVER: &str = "a live publisher dies thus, and the same key comes at once on a new \
    connection: from the death to NetStream.Publish.Start";

/// How a publisher goes away.
#[derive(Clone, Copy)]
enum Death {
    Reset,
    Closed,
    /// Its connection stays, and nothing comes any more.
    Silent,
}

pub fn measure(server: &mut Server, plan: &Plan, table: &mut Table) {
    let media = Media::two_megabits();
    let url = |name: &str| server.gateway.rtmp(&format!("live/{name}"));
    let mut starts = Vec::new();
    for round in 0..plan.sessions {
        let began = Instant::now();
        let publisher = Publisher::connect(&url(&format!("start{round}")), &media);
        starts.push(began.elapsed());
        drop(publisher);
    }
    add(table, "Publish.Start", START, &starts);

    for (name, death) in [("RST", Death::Reset), ("FIN", Death::Closed), ("silence", Death::Silent)]
    {
        let url = url(name);
        let mut taken = Vec::new();
        let mut living = live(&url, &media);
        for _ in 0..plan.sessions {
            let died = Instant::now();
            let silent = living.die(death);
            living = Publisher::connect(&url, &media);
            taken.push(died.elapsed());
            living.send_headers(&media);
            living.send_until(Duration::from_secs(1));
            drop(silent);
        }
        add(table, &format!("takeover after {name}"), TAKEOVER, &taken);
    }
}

fn live(url: &str, media: &Media) -> Publisher {
    let mut publisher = Publisher::connect(url, media);
    publisher.send_headers(media);
    publisher.send_until(Duration::from_secs(1));
    publisher
}

impl Publisher {
    /// The connection, where it outlives the publisher.
    fn die(self, death: Death) -> Option<Self> {
        match death {
            Death::Reset => self.reset(),
            Death::Closed => {}
            Death::Silent => return Some(self),
        }
        None
    }
}

fn add(table: &mut Table, name: &str, how: &'static str, times: &[Duration]) {
    let values: Vec<f64> = times.iter().map(|time| time.as_secs_f64() * 1000.0).collect();
    for (label, share) in [("P50", 0.5), ("P99", 0.99)] {
        let value = percentile(&values, share).unwrap_or(f64::NAN);
        table.add(&format!("{name}, {label}"), "ms", how, value);
    }
}
