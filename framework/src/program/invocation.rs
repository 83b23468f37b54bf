//! The command line as it is recorded with a job on a cluster: without secrets, and at most 16 KiB.

use std::ffi::OsString;

use napreduce_protocol::Invocation;

use super::options::RunArguments;

const BYTES_MAX: usize = 16 << 10;
const INPUTS_MAX: usize = 100;
/// The replacement for a secret.
const HIDDEN: &str = "***";
/// Parts of names whose values are secrets.
const SECRET_NAMES: [&str; 9] = [
    "secret",
    "token",
    "passw",
    "passphrase",
    "credential",
    "api-key",
    "apikey",
    "access-key",
    "authorization",
];

/// Describes a run by its command line; `None` for a run without one.
pub(crate) fn invocation(run: &RunArguments, inputs: &[String]) -> Option<Invocation> {
    if run.command.is_empty() {
        return None;
    }
    let command = first(run.command.clone(), BYTES_MAX);
    let inputs_total = inputs.len();
    let inputs = inputs
        .iter()
        .take(INPUTS_MAX)
        .map(|input| without_secret(input))
        .collect();
    let confs = run.conf.iter().map(|conf| without_secret(conf)).collect();
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let directory = std::env::current_dir().unwrap_or_default();
    Some(Invocation {
        left_out: number(run.command.len() - command.len()),
        command,
        directory: directory.to_string_lossy().into_owned(),
        inputs: first(inputs, BYTES_MAX / 2),
        inputs_total: number(inputs_total),
        split_size: run.split_size.bytes(),
        confs: first(confs, BYTES_MAX / 4),
    })
}

/// Returns the first texts, as many as have at most this length together.
fn first(texts: Vec<String>, bytes_max: usize) -> Vec<String> {
    let mut bytes = 0;
    let fits = |text: &String| {
        bytes += text.len();
        bytes <= bytes_max
    };
    texts.into_iter().take_while(fits).collect()
}

/// Returns a command line without the values of options whose names mean a secret, and without passwords in
/// addresses.
pub(crate) fn without_secrets(line: impl IntoIterator<Item = OsString>) -> Vec<String> {
    let mut is_value_secret = false;
    let hide = |argument: OsString| {
        let argument = argument.to_string_lossy().into_owned();
        let is_option = argument.starts_with('-');
        if std::mem::take(&mut is_value_secret) && !is_option {
            return HIDDEN.to_owned();
        }
        is_value_secret = is_option && !argument.contains('=') && is_secret(&argument);
        without_secret(&argument)
    };
    line.into_iter().map(hide).collect()
}

/// Hides the value of `NAME=VALUE` with a secret's name, and the password and the signature in an address.
fn without_secret(argument: &str) -> String {
    if let Some((name, _)) = argument.split_once('=').filter(|(name, _)| is_secret(name)) {
        return format!("{name}={HIDDEN}");
    }
    let Some((scheme, rest)) = argument.split_once("://") else {
        return argument.to_owned();
    };
    let (address, query) = rest
        .split_once('?')
        .map_or((rest, None), |(address, query)| (address, Some(query)));
    let (host, path) = address.split_at(address.find('/').unwrap_or(address.len()));
    let host = host
        .rsplit_once('@')
        .map_or(host.to_owned(), |(_, host)| format!("{HIDDEN}@{host}"));
    let query = query.map_or(String::new(), |query| {
        if is_secret(query) || query.to_ascii_lowercase().contains("sig") {
            format!("?{HIDDEN}")
        } else {
            format!("?{query}")
        }
    });
    format!("{scheme}://{host}{path}{query}")
}

/// Whether a value with this name is secret. The file of a secret is not.
fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('_', "-");
    !name.ends_with("-file") && SECRET_NAMES.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hidden(line: &str) -> String {
        without_secrets(line.split(' ').map(OsString::from)).join(" ")
    }

    #[test]
    fn secrets_are_hidden_and_the_rest_is_kept() {
        for kept in [
            "wordcount in --output out --conf slowstart=0.5 --reduces 3",
            "job --secret-file /home/ada/secret --tokenizer-file t",
            "job s3://bucket/a?b gs://b/c d=e",
        ] {
            assert_eq!(hidden(kept), kept);
        }
        for (line, expected) in [
            ("job --api-token abc in", "job --api-token *** in"),
            ("job --password=abc in", "job --password=*** in"),
            (
                "job --conf AWS_SECRET_ACCESS_KEY=abc",
                "job --conf AWS_SECRET_ACCESS_KEY=***",
            ),
            (
                "job --db postgres://ada:abc@host/db",
                "job --db postgres://***@host/db",
            ),
            ("job https://h/x?X-Amz-Signature=abc", "job https://h/x?***"),
            ("job --db=https://ada:abc@h/x", "job --db=https://***@h/x"),
        ] {
            assert_eq!(hidden(line), expected);
        }
    }

    #[test]
    fn long_command_lines_are_cut() {
        let mut run = RunArguments::silent("out".into());
        assert_eq!(invocation(&run, &[]), None);
        run.command = vec!["x".repeat(1 << 10); 20];
        let inputs = vec!["in".to_owned(); 300];
        let recorded = invocation(&run, &inputs).expect("a command line");
        assert_eq!((recorded.command.len(), recorded.left_out), (16, 4));
        assert_eq!((recorded.inputs.len(), recorded.inputs_total), (100, 300));
    }
}
