//! HTTP clients with `ring` as their cryptography provider, without setting the provider of the whole process.

use crate::StoreOptions;
use object_store::client::{HttpClient, HttpConnector};
use object_store::{ClientConfigKey, ClientOptions, Error, Result};
use reqwest::{ClientBuilder, NoProxy, Proxy};
use rustls::ClientConfig;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls_platform_verifier::Verifier;
use std::sync::Arc;
use std::time::Duration;

/// Creates HTTP clients. Proxies and certificates come from the options; nothing else is read from the environment.
#[derive(Debug)]
pub(super) struct Connector {
    http_proxy: Option<String>,
    https_proxy: Option<String>,
    no_proxy: Option<String>,
    certificates: Option<String>,
    connect_timeout: Duration,
    request_timeout: Duration,
}

impl Connector {
    pub fn new(options: &StoreOptions) -> Connector {
        let owned = |name: &str| options.get(name).map(str::to_string);
        Connector {
            http_proxy: owned("HTTP_PROXY"),
            https_proxy: owned("HTTPS_PROXY"),
            no_proxy: owned("NO_PROXY"),
            certificates: owned("AWS_CA_BUNDLE"),
            connect_timeout: options.connect_timeout,
            request_timeout: options.request_timeout,
        }
    }

    fn tls(&self) -> Result<ClientConfig> {
        let provider = Arc::new(ring::default_provider());
        let roots: Vec<CertificateDer<'static>> = match &self.certificates {
            Some(file) => {
                let found = CertificateDer::pem_file_iter(file).map_err(generic)?;
                found.collect::<std::result::Result<_, _>>().map_err(generic)?
            }
            None => Vec::new(),
        };
        let verifier = Verifier::new_with_extra_roots(roots, provider.clone()).map_err(generic)?;
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.map_err(generic)?.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
        Ok(config.with_no_client_auth())
    }

    fn proxies(&self, mut builder: ClientBuilder) -> Result<ClientBuilder> {
        builder = builder.no_proxy();
        let except = || self.no_proxy.as_deref().and_then(NoProxy::from_string);
        if let Some(url) = &self.http_proxy {
            builder = builder.proxy(Proxy::http(url).map_err(generic)?.no_proxy(except()));
        }
        if let Some(url) = &self.https_proxy {
            builder = builder.proxy(Proxy::https(url).map_err(generic)?.no_proxy(except()));
        }
        Ok(builder)
    }
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> Result<HttpClient> {
        let set = |key| options.get_config_value(&key);
        // True for a credential service, which is either close by or absent.
        let near = set(ClientConfigKey::ConnectTimeout).is_some_and(|text| text == "1s");
        let connect = if near { Duration::from_secs(1) } else { self.connect_timeout };
        let builder = self.proxies(ClientBuilder::new().tls_backend_preconfigured(self.tls()?))?;
        let builder = builder.user_agent(concat!("flowgrid/", env!("CARGO_PKG_VERSION")));
        let builder = builder.timeout(self.request_timeout).connect_timeout(connect);
        let plain = set(ClientConfigKey::AllowHttp).is_some_and(|text| text == "true");
        let client = builder.https_only(!plain).build().map_err(generic)?;
        Ok(HttpClient::new(client))
    }
}

fn generic(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::Generic { store: "HTTP client", source: Box::new(error) }
}
