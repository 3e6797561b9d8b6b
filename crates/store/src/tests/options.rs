//! Options: what is taken from an environment, and what is shown of it.

use crate::{StoreOptions, file_systems};
use io::FileSystems;
use status::Code;

fn variables() -> Vec<(String, String)> {
    let pairs = [
        ("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE"),
        ("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI"),
        ("AWS_REGION", "eu-west-1"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "/keys/gcs.json"),
        ("https_proxy", "http://user:pass@proxy:3128"),
        ("AWS_SESSION_TOKEN", ""),
        ("HOME", "/home/user"),
        ("PATH", "/bin"),
    ];
    pairs.map(|(name, value)| (name.to_string(), value.to_string())).into()
}

#[test]
fn only_settings_of_stores_are_taken() {
    let options = StoreOptions::from_variables(variables());
    assert_eq!(options.get("AWS_REGION"), Some("eu-west-1"));
    assert_eq!(options.get("HTTPS_PROXY"), Some("http://user:pass@proxy:3128"));
    assert_eq!(options.get("AWS_SESSION_TOKEN"), None, "an empty variable says nothing");
    assert_eq!((options.get("HOME"), options.get("PATH")), (None, None));
    assert_eq!(options.family("AWS_").count(), 3);
}

#[test]
fn what_settings_say_is_not_shown() {
    let shown = format!("{:?}", StoreOptions::from_variables(variables()));
    assert!(shown.contains("AWS_SECRET_ACCESS_KEY"), "{shown}");
    for value in ["AKIAEXAMPLE", "wJalrXUtnFEMI", "gcs.json", "user:pass", "eu-west-1"] {
        assert!(!shown.contains(value), "{value} is in {shown}");
    }
}

#[test]
fn secrets_are_known_by_name() {
    let options = StoreOptions::from_variables(variables()).with("AWS_WEB_IDENTITY_TOKEN_FILE", "/var/run/token");
    let secrets = options.secrets();
    assert!(secrets.contains(&"wJalrXUtnFEMI".to_string()) && secrets.contains(&"AKIAEXAMPLE".to_string()));
    assert!(!secrets.iter().any(|secret| secret == "eu-west-1" || secret == "/var/run/token"), "{secrets:?}");
}

#[test]
fn schemes_that_were_not_built_say_how_to_get_them() {
    let (systems, none) = (file_systems(&StoreOptions::new()), FileSystems::local());
    let built = [
        ("s3", cfg!(feature = "s3")),
        ("gs", cfg!(feature = "gs")),
        ("az", cfg!(feature = "az")),
        ("hdfs", cfg!(feature = "hdfs")),
    ];
    for (scheme, built) in built {
        let name = format!("{scheme}://place/file");
        assert_eq!(systems.of(&name).is_ok(), built, "{scheme}");
        let error = none.of(&name).err().expect("no store was built");
        assert_eq!(error.code, Code::Unimplemented);
        let words = format!("File system scheme '{scheme}' not implemented (file: '{name}')");
        assert!(error.message.starts_with(&words), "{}", error.message);
        assert!(error.message.contains(&format!("--features {scheme}")), "{}", error.message);
    }
    assert!(systems.of("gopher://hole").is_err_and(|error| !error.message.contains("feature")));
}
