//! Names of objects: `scheme://bucket/key`, and for Azure also `az://account.blob.core.windows.net/container/key`.

use io::fs::path::split_scheme;
use object_store::path::Path;
use status::{Error, Result, invalid};

/// A bucket and a key in it; the key is empty for the bucket itself.
#[derive(Debug, PartialEq)]
pub(crate) struct Address {
    /// The bucket; prefixed by its account and a slash, if the URL names one.
    pub bucket: String,
    pub key: Path,
}

impl Address {
    /// Parses a URL. Consecutive slashes count as one, as in paths.
    pub fn parse(scheme: &str, name: &str) -> Result<Address> {
        let mut parts = split_scheme(name).1.split('/');
        let mut bucket = parts.next().unwrap_or_default().to_string();
        let mut parts = parts.filter(|part| !part.is_empty() && *part != ".");
        // A container name has no dots; the host name of an account has.
        if scheme == "az" && bucket.contains('.') {
            let container = parts.next().ok_or_else(|| no_bucket(scheme, name))?;
            bucket = format!("{bucket}/{container}");
        }
        if bucket.is_empty() {
            return Err(no_bucket(scheme, name));
        }
        let key = parts.collect::<Vec<_>>().join("/");
        let key = Path::parse(key).map_err(|error| invalid!("{name}; {error}"))?;
        Ok(Address { bucket, key })
    }
}

fn no_bucket(scheme: &str, name: &str) -> Error {
    invalid!("{} path doesn't contain a bucket name: {name}", scheme.to_ascii_uppercase())
}

pub(super) fn no_object(scheme: &str, name: &str) -> Error {
    invalid!("{} path doesn't contain an object name: {name}", scheme.to_ascii_uppercase())
}
