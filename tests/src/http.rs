//! HTTP as the tests' own clients speak it.

use std::io::Read;
use std::time::Duration;

/// An answer that was read whole.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// # Panics
    /// When the body is not JSON.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error} in {}", self.text()))
    }
}

/// A client that keeps its connections. Statuses are answers, not errors.
#[derive(Clone, Debug)]
pub struct Client {
    agent: ureq::Agent,
}

impl Client {
    /// A client whose requests may take `within`, body included.
    #[must_use]
    pub fn new(within: Duration) -> Self {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(within))
            .max_redirects(3);
        Self { agent: config.build().into() }
    }

    /// # Errors
    /// When the connection fails or the deadline passes.
    pub fn try_get(&self, url: &str) -> Result<Answer, ureq::Error> {
        let mut response = self.agent.get(url).call()?;
        let body = response.body_mut().with_config().limit(1 << 30).read_to_vec()?;
        Ok(Self::answer(&response, body))
    }

    /// # Panics
    /// When the connection fails or the deadline passes.
    #[must_use]
    pub fn get(&self, url: &str) -> Answer {
        self.try_get(url).unwrap_or_else(|error| panic!("GET {url}: {error}"))
    }

    /// # Panics
    /// When the connection fails or the deadline passes.
    #[must_use]
    pub fn head(&self, url: &str) -> Answer {
        let response = self.agent.head(url).call();
        let response = response.unwrap_or_else(|error| panic!("HEAD {url}: {error}"));
        Self::answer(&response, Vec::new())
    }

    /// # Panics
    /// When the connection fails or the deadline passes.
    #[must_use]
    pub fn delete(&self, url: &str) -> Answer {
        let response = self.agent.delete(url).call();
        let mut response = response.unwrap_or_else(|error| panic!("DELETE {url}: {error}"));
        let body = response.body_mut().read_to_vec().unwrap_or_default();
        Self::answer(&response, body)
    }

    /// Begins a request whose body has no end; the status and the body to read from.
    ///
    /// # Panics
    /// When the connection fails.
    #[must_use]
    pub fn stream(&self, url: &str) -> (u16, impl Read + use<>) {
        let response = self.agent.get(url).call();
        let response = response.unwrap_or_else(|error| panic!("GET {url}: {error}"));
        (response.status().as_u16(), response.into_body().into_reader())
    }

    fn answer(response: &ureq::http::Response<ureq::Body>, body: Vec<u8>) -> Answer {
        let text = |value: &ureq::http::HeaderValue| {
            String::from_utf8_lossy(value.as_bytes()).into_owned()
        };
        let headers = response.headers().iter();
        let headers = headers.map(|(key, value)| (key.to_string(), text(value))).collect();
        Answer { status: response.status().as_u16(), headers, body }
    }
}

impl Default for Client {
    fn default() -> Self {
        Self::new(Duration::from_secs(10))
    }
}
