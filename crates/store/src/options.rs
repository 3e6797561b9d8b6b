//! Settings of stores: addresses, credentials, limits. Secrets are never printed.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Settings of stores under their environment variable names, and limits of requests.
///
/// Its `Debug` form prints the names of the settings and hides the values.
#[derive(Clone)]
pub struct StoreOptions {
    settings: BTreeMap<String, String>,
    /// How long a connection may take to be made.
    pub connect_timeout: Duration,
    /// How long one request may take, its answer included.
    pub request_timeout: Duration,
    /// The number of retries after a transient failure.
    pub retries: usize,
    /// The time limit for all retries of a request.
    pub retry_timeout: Duration,
}

/// Prefixes of environment variables for stores.
const FAMILIES: [&str; 5] = ["AWS_", "S3_", "GOOGLE_", "AZURE_", "HADOOP_"];
/// Further environment variables for stores.
const SINGLES: [&str; 4] = ["STORAGE_EMULATOR_HOST", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"];
/// Parts of the names of settings whose values must not be printed.
const SECRET: [&str; 6] = ["KEY", "SECRET", "TOKEN", "SAS", "PASSWORD", "CREDENTIAL"];

impl Default for StoreOptions {
    fn default() -> StoreOptions {
        StoreOptions {
            settings: BTreeMap::new(),
            connect_timeout: Duration::from_secs(5),
            request_timeout: Duration::from_secs(60),
            retries: 5,
            retry_timeout: Duration::from_secs(60),
        }
    }
}

impl StoreOptions {
    /// No settings, and the default limits.
    pub fn new() -> StoreOptions {
        StoreOptions::default()
    }

    /// The settings among these environment variables; others are ignored.
    pub fn from_variables(variables: impl IntoIterator<Item = (String, String)>) -> StoreOptions {
        let meant = |name: &str| FAMILIES.iter().any(|family| name.starts_with(family)) || SINGLES.contains(&name);
        let known = |(name, value): (String, String)| {
            let name = name.to_ascii_uppercase();
            (meant(&name) && !value.is_empty()).then_some((name, value))
        };
        StoreOptions { settings: variables.into_iter().filter_map(known).collect(), ..StoreOptions::default() }
    }

    /// The same with a setting: `with("AWS_ENDPOINT_URL", "http://127.0.0.1:9000")`.
    pub fn with(mut self, name: &str, value: &str) -> StoreOptions {
        self.settings.insert(name.to_ascii_uppercase(), value.to_string());
        self
    }

    /// The same with at most `retries` retries within `limit`.
    pub fn with_retries(mut self, retries: usize, limit: Duration) -> StoreOptions {
        (self.retries, self.retry_timeout) = (retries, limit);
        self
    }

    /// The value of a setting.
    #[allow(dead_code)] // unused in a build without stores
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.settings.get(name).map(String::as_str)
    }

    /// All settings whose names begin with `begin`.
    #[allow(dead_code)]
    pub(crate) fn family<'a>(&'a self, begin: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let all = self.settings.iter().filter(move |(name, _)| name.starts_with(begin));
        all.map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Values that must not appear in messages.
    #[allow(dead_code)]
    pub(crate) fn secrets(&self) -> Vec<String> {
        let secret = |name: &str| SECRET.iter().any(|part| name.contains(part)) && !name.ends_with("_FILE");
        let all = self.settings.iter().filter(|(name, value)| secret(name) && value.len() > 3);
        all.map(|(_, value)| value.clone()).collect()
    }
}

impl fmt::Debug for StoreOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreOptions")
            .field("settings", &self.settings.keys().collect::<Vec<_>>())
            .field("connect_timeout", &self.connect_timeout)
            .field("request_timeout", &self.request_timeout)
            .field("retries", &self.retries)
            .field("retry_timeout", &self.retry_timeout)
            .finish()
    }
}
