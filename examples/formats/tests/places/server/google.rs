//! Starts `google.py`, an implementation of the XML API of Google Cloud Storage for these tests, since no
//! other exists.

use super::Dialect;

const SECRET: &str = "ya29.only-for-tests";

pub static DIALECT: Dialect = Dialect {
    name: "google",
    program: || "python3".to_owned(),
    install: "install Python 3",
    arguments: &[
        concat!(env!("CARGO_MANIFEST_DIR"), "/tests/places/server/google.py"),
        "PORT",
    ],
    variables: &[],
    root: "",
    question: "",
    head: "Authorization: Bearer ya29.only-for-tests\r\n",
    create: "",
    list: "list-type=2&max-keys=1000",
    list_uploads: "uploads&max-uploads=1000",
    element: "Key",
    begin: ("POST", "uploads"),
    scheme: "gs://",
    host: "",
    service: "Google Cloud Storage",
    feature: "gcs",
    passed: "GOOGLE_*",
    secret: SECRET,
    credentials: &["GOOGLE_BEARER_TOKEN"],
    unsigned: "GOOGLE_SKIP_SIGNATURE",
    elsewhere: &[
        ("GCE_METADATA_HOST", "127.0.0.1:1"),
        ("GCE_METADATA_IP", "127.0.0.1:1"),
    ],
    remedy: "set GOOGLE_APPLICATION_CREDENTIALS to the file of a service account",
    environment: &[("GOOGLE_BEARER_TOKEN", SECRET)],
    endpoint: "GOOGLE_BASE_URL",
};
