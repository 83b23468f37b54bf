//! Starts `azurite-blob`, which implements Azure Blob Storage.
//!
//! The tests use their own account: azurite's default key is in every program that reads from Azure, so a
//! search for leaked keys would find it.

use super::Dialect;

const SECRET: &str = "YSBrZXkgb2YgYXp1cml0ZSB0aGF0IG9wZW5zIG5vdGhpbmcgZWxzZSwgb25seSBmb3IgdGVzdHM=";

pub static DIALECT: Dialect = Dialect {
    name: "azurite",
    program: || std::env::var("NAPREDUCE_AZURITE").unwrap_or_else(|_| "azurite-blob".to_owned()),
    install: "install it with: npm install azurite, and have azurite-blob on the PATH or name it in NAPREDUCE_AZURITE",
    arguments: &[
        "--blobHost",
        "127.0.0.1",
        "--blobPort",
        "PORT",
        "--inMemoryPersistence",
        "--skipApiVersionCheck",
        "--silent",
        "--disableTelemetry",
    ],
    variables: &[(
        "AZURITE_ACCOUNTS",
        "onlyfortests:YSBrZXkgb2YgYXp1cml0ZSB0aGF0IG9wZW5zIG5vdGhpbmcgZWxzZSwgb25seSBmb3IgdGVzdHM=",
    )],
    root: "/onlyfortests",
    // A signature of the account for the requests that the tests send directly.
    question: "&sv=2021-12-02&ss=b&srt=sco&sp=rwdlacup&se=2999-01-01T00:00:00Z\
               &sig=RfCj69jPoj6ZAWygrFwFhM4wRBzDOcGACFOFDFLvDrE%3D",
    head: "x-ms-blob-type: BlockBlob\r\n",
    create: "restype=container",
    list: "restype=container&comp=list",
    list_uploads: "restype=container&comp=list&include=uncommittedblobs",
    element: "Name",
    begin: ("PUT", "comp=block&blockid=MDAwMQ%3D%3D"),
    scheme: "abfss://",
    host: "@onlyfortests.dfs.core.windows.net",
    service: "Azure storage",
    feature: "azure",
    passed: "AZURE_*",
    secret: SECRET,
    credentials: &["AZURE_STORAGE_ACCOUNT_KEY"],
    unsigned: "AZURE_SKIP_SIGNATURE",
    elsewhere: &[("AZURE_MSI_ENDPOINT", "http://127.0.0.1:1")],
    remedy: "set AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_KEY",
    environment: &[("AZURE_STORAGE_ACCOUNT_KEY", SECRET)],
    endpoint: "AZURE_STORAGE_ENDPOINT",
};
