//! Creates the clients of each scheme from the settings in the options.

use super::connector::Connector;
use crate::StoreOptions;
use object_store::{BackoffConfig, ClientOptions, ObjectStore, Result, RetryConfig};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// Creates the client of a bucket.
pub(crate) type Connect = Box<dyn Fn(&str) -> Result<Arc<dyn ObjectStore>> + Send + Sync>;

/// The schemes of this build.
pub(crate) fn schemes(options: &StoreOptions) -> Vec<(&'static str, Connect)> {
    let mut found: Vec<(&'static str, Connect)> = Vec::new();
    let mut add = |scheme, connect: fn(&StoreOptions, &str) -> Result<Arc<dyn ObjectStore>>| {
        let options = options.clone();
        found.push((scheme, Box::new(move |bucket: &str| connect(&options, bucket)) as Connect));
    };
    #[cfg(feature = "s3")]
    add("s3", s3::bucket);
    #[cfg(feature = "gs")]
    add("gs", gs::bucket);
    #[cfg(feature = "az")]
    add("az", az::container);
    found
}

/// Number and time limit of retries.
fn retry(options: &StoreOptions) -> RetryConfig {
    let backoff = BackoffConfig { max_backoff: Duration::from_secs(5), ..BackoffConfig::default() };
    RetryConfig { backoff, max_retries: options.retries, retry_timeout: options.retry_timeout }
}

fn client(options: &StoreOptions) -> ClientOptions {
    ClientOptions::new().with_timeout(options.request_timeout).with_connect_timeout(options.connect_timeout)
}

fn connector(options: &StoreOptions) -> Connector {
    Connector::new(options)
}

/// True if requests to this address may go without TLS: an explicit `http://` asks for it, unless a setting forbids
/// it.
fn plain_http(options: &StoreOptions, setting: &str, address: Option<&str>) -> bool {
    match options.get(setting) {
        Some(said) => truth(said),
        None => address.is_some_and(|address| address.starts_with("http://")),
    }
}

fn truth(text: &str) -> bool {
    matches!(text.to_ascii_lowercase().as_str(), "1" | "true" | "yes" | "on")
}

/// Settings of a family that the client understands; the environment may contain others for other programs.
fn known<'a, K: FromStr>(options: &'a StoreOptions, family: &'a str) -> impl Iterator<Item = (K, &'a str)> {
    let key = |name: &str| name.to_ascii_lowercase().parse::<K>().ok();
    options.family(family).filter_map(move |(name, value)| key(name).map(|key| (key, value)))
}

#[cfg(feature = "s3")]
pub(crate) mod s3 {
    //! Amazon S3 and compatible stores.

    use super::*;
    use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};

    pub(super) fn bucket(options: &StoreOptions, bucket: &str) -> Result<Arc<dyn ObjectStore>> {
        Ok(Arc::new(builder(options).with_bucket_name(bucket).build()?))
    }

    pub(crate) fn builder(options: &StoreOptions) -> AmazonS3Builder {
        let address = endpoint(options);
        let client = client(options).with_allow_http(plain_http(options, "AWS_ALLOW_HTTP", address.as_deref()));
        let mut builder = AmazonS3Builder::new()
            .with_client_options(client)
            .with_retry(retry(options))
            .with_http_connector(connector(options));
        for (key, value) in known::<AmazonS3ConfigKey>(options, "AWS_") {
            let handled = matches!(
                key,
                AmazonS3ConfigKey::Endpoint
                    | AmazonS3ConfigKey::S3Endpoint
                    | AmazonS3ConfigKey::Bucket
                    | AmazonS3ConfigKey::Client(_)
            );
            if !handled {
                builder = builder.with_config(key, value);
            }
        }
        if let (Some(region), None) = (options.get("S3_REGION"), options.get("AWS_REGION")) {
            builder = builder.with_region(region);
        }
        match address {
            Some(address) => builder.with_endpoint(address),
            None => builder,
        }
    }

    /// The endpoint, if it is not Amazon's: the variables of AWS's tools, then TensorFlow's, which has no scheme.
    pub(crate) fn endpoint(options: &StoreOptions) -> Option<String> {
        let names = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT", "S3_ENDPOINT"];
        let address = names.iter().find_map(|name| options.get(name))?;
        if address.contains("://") {
            return Some(address.trim_end_matches('/').to_string());
        }
        let secure = options.get("S3_USE_HTTPS").is_none_or(truth);
        Some(format!("{}://{}", if secure { "https" } else { "http" }, address.trim_end_matches('/')))
    }
}

#[cfg(feature = "gs")]
pub(crate) mod gs {
    //! Google Cloud Storage.

    use super::*;
    use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};

    pub(super) fn bucket(options: &StoreOptions, bucket: &str) -> Result<Arc<dyn ObjectStore>> {
        Ok(Arc::new(builder(options).with_bucket_name(bucket).build()?))
    }

    pub(crate) fn builder(options: &StoreOptions) -> GoogleCloudStorageBuilder {
        let address = address(options);
        let client = client(options).with_allow_http(plain_http(options, "GOOGLE_ALLOW_HTTP", address.as_deref()));
        let mut builder = GoogleCloudStorageBuilder::new()
            .with_client_options(client)
            .with_retry(retry(options))
            .with_http_connector(connector(options));
        for (key, value) in known::<GoogleConfigKey>(options, "GOOGLE_") {
            if !matches!(key, GoogleConfigKey::Bucket | GoogleConfigKey::BaseUrl | GoogleConfigKey::Client(_)) {
                builder = builder.with_config(key, value);
            }
        }
        // An emulator has no accounts, but some requests need one even if signatures are skipped.
        if options.get("STORAGE_EMULATOR_HOST").is_some() {
            builder = builder.with_bearer_token("emulator");
        }
        match address {
            Some(address) => builder.with_base_url(&address),
            None => builder,
        }
    }

    /// The endpoint, if it is not Google's.
    pub(crate) fn address(options: &StoreOptions) -> Option<String> {
        let address = options.get("GOOGLE_BASE_URL").or(options.get("STORAGE_EMULATOR_HOST"))?;
        let scheme = if address.contains("://") { "" } else { "http://" };
        Some(format!("{scheme}{}", address.trim_end_matches('/')))
    }
}

#[cfg(feature = "az")]
pub(crate) mod az {
    //! Azure Blob Storage.

    use super::*;
    use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};

    pub(super) fn container(options: &StoreOptions, container: &str) -> Result<Arc<dyn ObjectStore>> {
        Ok(Arc::new(builder(options, container).build()?))
    }

    /// A container of the account in the environment, or `account.host/container`.
    pub(crate) fn builder(options: &StoreOptions, container: &str) -> MicrosoftAzureBuilder {
        let address = options.get("AZURE_STORAGE_ENDPOINT").or(options.get("AZURE_ENDPOINT"));
        let client = client(options).with_allow_http(plain_http(options, "AZURE_ALLOW_HTTP", address));
        let mut builder = MicrosoftAzureBuilder::new()
            .with_client_options(client)
            .with_retry(retry(options))
            .with_http_connector(connector(options));
        for (key, value) in known::<AzureConfigKey>(options, "AZURE_") {
            if !matches!(key, AzureConfigKey::ContainerName | AzureConfigKey::Client(_)) {
                builder = builder.with_config(key, value);
            }
        }
        // The variable names used by Azure's own tools.
        if let Some(account) = options.get("AZURE_STORAGE_ACCOUNT") {
            builder = builder.with_account(account);
        }
        if let Some(key) = options.get("AZURE_STORAGE_KEY") {
            builder = builder.with_access_key(key);
        }
        match container.split_once('/') {
            Some((host, container)) => {
                let account = host.split('.').next().unwrap_or(host);
                builder.with_account(account).with_container_name(container)
            }
            None => builder.with_container_name(container),
        }
    }
}
