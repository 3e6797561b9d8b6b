//! How settings of the environment become those of clients.

#[cfg(feature = "s3")]
mod s3 {
    use crate::StoreOptions;
    use crate::objects::connect::s3::{builder, endpoint};
    use object_store::aws::AmazonS3ConfigKey as Key;

    fn options(pairs: &[(&str, &str)]) -> StoreOptions {
        pairs.iter().fold(StoreOptions::new(), |options, (name, value)| options.with(name, value))
    }

    #[test]
    fn addresses_of_aws_and_of_tensorflow() {
        let address = |pairs: &[(&str, &str)]| endpoint(&options(pairs));
        assert_eq!(address(&[]), None);
        assert_eq!(address(&[("AWS_ENDPOINT_URL", "http://h:9000/")]).unwrap(), "http://h:9000");
        let both = [("AWS_ENDPOINT_URL", "http://all"), ("AWS_ENDPOINT_URL_S3", "http://s3")];
        assert_eq!(address(&both).unwrap(), "http://s3");
        assert_eq!(address(&[("S3_ENDPOINT", "h:9000")]).unwrap(), "https://h:9000");
        assert_eq!(address(&[("S3_ENDPOINT", "h:9000"), ("S3_USE_HTTPS", "0")]).unwrap(), "http://h:9000");
    }

    #[test]
    fn the_client_gets_what_the_environment_says() {
        let options = options(&[
            ("AWS_ACCESS_KEY_ID", "id"),
            ("AWS_SECRET_ACCESS_KEY", "secret"),
            ("AWS_SESSION_TOKEN", "token"),
            ("AWS_DEFAULT_REGION", "eu-central-1"),
            ("S3_ENDPOINT", "http://h:9000"),
            ("AWS_CA_BUNDLE", "/some/file"),
            ("AWS_PAGER", "less"),
        ]);
        let builder = builder(&options);
        let value = |key| builder.get_config_value(&key).unwrap();
        assert_eq!((value(Key::AccessKeyId), value(Key::SecretAccessKey)), ("id".into(), "secret".into()));
        assert_eq!((value(Key::Token), value(Key::DefaultRegion)), ("token".into(), "eu-central-1".into()));
        assert_eq!(value(Key::Endpoint), "http://h:9000");
        assert_eq!(value(Key::Client(object_store::ClientConfigKey::AllowHttp)), "true");
    }

    #[test]
    fn plain_http_is_for_those_who_write_it() {
        let allowed = |pairs: &[(&str, &str)]| {
            let key = Key::Client(object_store::ClientConfigKey::AllowHttp);
            builder(&options(pairs)).get_config_value(&key).unwrap()
        };
        assert_eq!(allowed(&[]), "false");
        assert_eq!(allowed(&[("AWS_ENDPOINT_URL", "https://h")]), "false");
        assert_eq!(allowed(&[("AWS_ENDPOINT_URL", "http://h"), ("AWS_ALLOW_HTTP", "false")]), "false");
        assert_eq!(allowed(&[("AWS_ALLOW_HTTP", "1")]), "true");
    }
}

#[cfg(feature = "gs")]
mod gs {
    use crate::StoreOptions;
    use crate::objects::connect::gs::{address, builder};
    use object_store::gcp::GoogleConfigKey as Key;

    #[test]
    fn credentials_and_emulators() {
        let options = StoreOptions::new().with("GOOGLE_APPLICATION_CREDENTIALS", "/keys/gcs.json");
        let value = builder(&options).get_config_value(&Key::ApplicationCredentials);
        assert_eq!((value.as_deref(), address(&options)), (Some("/keys/gcs.json"), None));
        let options = StoreOptions::new().with("STORAGE_EMULATOR_HOST", "localhost:9023");
        assert_eq!(address(&options).unwrap(), "http://localhost:9023");
        assert_eq!(builder(&options).get_config_value(&Key::BearerToken).as_deref(), Some("emulator"));
    }
}

#[cfg(feature = "az")]
mod az {
    use crate::StoreOptions;
    use crate::objects::connect::az::builder;
    use object_store::azure::AzureConfigKey as Key;

    fn options() -> StoreOptions {
        StoreOptions::new().with("AZURE_STORAGE_ACCOUNT", "mine").with("AZURE_STORAGE_KEY", "c2VjcmV0")
    }

    #[test]
    fn the_account_of_the_environment_or_of_the_name() {
        let value = |container: &str, key| builder(&options(), container).get_config_value(&key).unwrap();
        assert_eq!((value("box", Key::AccountName), value("box", Key::ContainerName)), ("mine".into(), "box".into()));
        assert_eq!(value("box", Key::AccessKey), "c2VjcmV0");
        let far = "theirs.blob.core.windows.net/box";
        assert_eq!((value(far, Key::AccountName), value(far, Key::ContainerName)), ("theirs".into(), "box".into()));
    }

    #[test]
    fn names_with_and_without_an_account() {
        let address = |name| crate::objects::Address::parse("az", name).unwrap();
        let plain = address("az://box/a/b");
        assert_eq!((plain.bucket.as_str(), plain.key.as_ref()), ("box", "a/b"));
        let full = address("az://theirs.blob.core.windows.net/box/a/b");
        assert_eq!((full.bucket.as_str(), full.key.as_ref()), ("theirs.blob.core.windows.net/box", "a/b"));
        assert!(crate::objects::Address::parse("az", "az://theirs.blob.core.windows.net").is_err());
    }

    #[test]
    fn a_client_is_made_without_a_network() {
        let systems = crate::file_systems(&options());
        assert!(systems.create("az://box/file").is_ok());
    }
}
