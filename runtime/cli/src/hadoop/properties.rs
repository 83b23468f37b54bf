//! Translates properties of Hadoop (`-D NAME=VALUE`). A property that changes results is applied or rejected; one
//! that only tunes Hadoop is accepted with a note; others become environment variables, as in Hadoop streaming.

/// The effect of a property.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// An option of `nap streaming`.
    Option(&'static str, String),
    Flag(&'static str),
    Reduces(u32),
    KeyFields(u32),
    /// `None` for all of the key.
    PartitionFields(Option<u32>),
    OrderedByFields,
    Order(Order),
    /// Separator of the fields of a mapper's lines.
    Separator(u8),
    /// Separator of the fields of a key.
    KeySeparator(u8),
    Variable(String),
    /// The value is what happens anyway.
    Default,
    /// Accepted without effect, for this reason.
    WithoutEffect(&'static str),
}

/// Prefixes of properties that change no result, and why they have no effect.
const TUNING: [(&str, &str); 6] = [
    (
        "mapreduce.map.memory. mapreduce.reduce.memory. mapreduce.map.java.opts mapreduce.reduce.java.opts \
         mapreduce.map.cpu. mapreduce.reduce.cpu. mapred.child. mapred.job.map.memory. mapred.job.reduce.memory. \
         mapreduce.job.heap.",
        "commands are not limited; --task-memory limits sorting",
    ),
    (
        "mapreduce.map.output.compress mapred.compress.map.output mapred.map.output.compression. \
         mapreduce.task.io. mapreduce.map.sort. io.sort. io.file. io.compression. io.serializations io.seqfile. \
         mapreduce.reduce.shuffle. mapreduce.shuffle. mapreduce.reduce.merge. mapreduce.reduce.input.buffer. \
         mapreduce.reduce.markreset. mapred.inmem. mapred.reduce.parallel.copies",
        "sort and shuffle have their own settings; see: nap streaming --help",
    ),
    (
        "mapreduce.output.fileoutputformat.compress mapred.output.compress",
        "output is not compressed",
    ),
    (
        "mapreduce.job.maps mapred.map.tasks mapreduce.input.fileinputformat.split.minsize mapred.min.split.size",
        "--split-size decides the number of maps",
    ),
    (
        "mapreduce.map.speculative mapreduce.reduce.speculative mapred.map.tasks.speculative. \
         mapred.reduce.tasks.speculative. mapreduce.job.speculative. mapreduce.job.priority mapred.job.priority",
        "the scheduler of the cluster decides",
    ),
    (
        "yarn. dfs. fs. ipc. net. hadoop. ha. mapreduce.client. mapreduce.cluster. mapreduce.framework. \
         mapreduce.jobhistory. mapreduce.jobtracker. mapreduce.tasktracker. mapreduce.am. mapreduce.job.acl \
         mapreduce.job.am. mapreduce.job.classloader mapreduce.job.counters. mapreduce.job.end-notification. \
         mapreduce.job.jvm. mapred.job.reuse.jvm. mapred.job.tracker mapreduce.job.node-label mapreduce.job.split. \
         mapreduce.job.tags mapreduce.job.ubertask. mapreduce.job.user.classpath mapreduce.user.classpath \
         mapreduce.job.running. mapreduce.map.log. mapreduce.reduce.log. mapreduce.map.env mapreduce.admin. \
         mapreduce.task.profile mapreduce.task.userlog. mapreduce.job.userlog. mapreduce.task.files. \
         mapreduce.fileoutputcommitter. mapreduce.reduce.env mapred.task.profile",
        "only for machines and daemons of Hadoop",
    ),
];

/// Prefixes of Hadoop's own properties.
const OWN: [&str; 12] = [
    "mapreduce.",
    "mapred.",
    "stream.",
    "map.",
    "num.",
    "io.",
    "fs.",
    "dfs.",
    "textinputformat.",
    "jobclient.",
    "keep.",
    "job.",
];

pub(super) fn meaning(name: &str, value: &str) -> Result<Meaning, String> {
    Ok(match name {
        "mapreduce.job.reduces" | "mapred.reduce.tasks" => Meaning::Reduces(number(name, value)?),
        "mapreduce.job.name" | "mapred.job.name" => Meaning::Option("--name", value.to_owned()),
        "mapreduce.job.queuename" | "mapred.job.queue.name" => {
            Meaning::Option("--queue", value.to_owned())
        }
        "mapreduce.map.maxattempts"
        | "mapreduce.reduce.maxattempts"
        | "mapred.map.max.attempts"
        | "mapred.reduce.max.attempts" => {
            Meaning::Option("--conf", format!("attempts-max={value}"))
        }
        "mapreduce.task.timeout" | "mapred.task.timeout" => Meaning::Option(
            "--conf",
            format!("task-timeout={}s", number(name, value)?.div_ceil(1000)),
        ),
        "mapreduce.job.reduce.slowstart.completedmaps"
        | "mapred.reduce.slowstart.completed.maps" => {
            Meaning::Option("--conf", format!("slowstart={value}"))
        }
        "mapreduce.input.fileinputformat.split.maxsize" | "mapred.max.split.size" => {
            Meaning::Option("--split-size", number(name, value)?.to_string())
        }
        "mapreduce.input.fileinputformat.input.dir.recursive" | "mapred.input.dir.recursive" => {
            match value {
                "true" => Meaning::Flag("--recursive"),
                _ => Meaning::Default,
            }
        }
        "stream.num.map.output.key.fields" => Meaning::KeyFields(number(name, value)?),
        "num.key.fields.for.partition" => Meaning::PartitionFields(Some(number(name, value)?)),
        "mapreduce.partition.keypartitioner.options" | "mapred.text.key.partitioner.options" => {
            Meaning::PartitionFields(first_fields(name, value)?)
        }
        "mapreduce.job.output.key.comparator.class" | "mapred.output.key.comparator.class" => {
            match value.rsplit('.').next() {
                Some("KeyFieldBasedComparator") => Meaning::OrderedByFields,
                Some("Text") | Some("Text$Comparator") => Meaning::Default,
                _ => {
                    return Err(refused(
                        name,
                        value,
                        "keys are compared as bytes, or by KeyFieldBasedComparator",
                    ));
                }
            }
        }
        "mapreduce.partition.keycomparator.options" | "mapred.text.key.comparator.options" => {
            Meaning::Order(Order::read(value).ok_or_else(|| {
                refused(
                    name,
                    value,
                    "expected -n, -r, or -kFROM[,TO] with n or r after a field",
                )
            })?)
        }
        "stream.map.output.field.separator" => Meaning::Separator(byte(name, value)?),
        "mapreduce.map.output.key.field.separator" | "map.output.key.field.separator" => {
            Meaning::KeySeparator(byte(name, value)?)
        }
        "stream.map.input.field.separator"
        | "stream.reduce.input.field.separator"
        | "stream.reduce.output.field.separator"
        | "mapreduce.output.textoutputformat.separator"
        | "mapred.textoutputformat.separator" => match value {
            "\t" | "\\t" => Meaning::Default,
            _ => {
                let why = "reducers read key TAB value, and their lines are the output; let the reducer write another separator";
                return Err(refused(name, value, why));
            }
        },
        "stream.num.reduce.output.key.fields" => Meaning::Default,
        "stream.non.zero.exit.is.failure" => match value {
            "true" => Meaning::Default,
            _ => {
                return Err(refused(
                    name,
                    value,
                    "write CMD || true for a command that may fail",
                ));
            }
        },
        "mapreduce.map.failures.maxpercent" | "mapreduce.reduce.failures.maxpercent" => match value
        {
            "0" => Meaning::Default,
            _ => return Err(refused(name, value, "a job has its whole output or fails")),
        },
        _ => other(name)?,
    })
}

fn other(name: &str) -> Result<Meaning, String> {
    let begins = |beginnings: &str| {
        beginnings
            .split_whitespace()
            .any(|beginning| name.starts_with(beginning))
    };
    if let Some((_, why)) = TUNING.iter().find(|(beginnings, _)| begins(beginnings)) {
        return Ok(Meaning::WithoutEffect(why));
    }
    if name.is_empty() || OWN.iter().any(|own| name.starts_with(own)) {
        return Err(format!(
            "-D {name}: not supported, and may change results; leave it out, or see: nap hadoop --help"
        ));
    }
    let variable = |letter: char| {
        if letter.is_ascii_alphanumeric() {
            letter
        } else {
            '_'
        }
    };
    Ok(Meaning::Variable(name.chars().map(variable).collect()))
}

fn refused(name: &str, value: &str, why: &str) -> String {
    format!("-D {name}={value}: not supported; {why}")
}

fn number(name: &str, value: &str) -> Result<u32, String> {
    value
        .parse()
        .map_err(|_| format!("{name} {value}: expected an integer"))
}

fn byte(name: &str, value: &str) -> Result<u8, String> {
    match value.as_bytes() {
        b"\\t" => Ok(b'\t'),
        [byte] if *byte != b'\n' => Ok(*byte),
        _ => Err(refused(name, value, "expected one byte")),
    }
}

/// Parses the number of fields in `-k1,N`; `-k1` is the whole key.
fn first_fields(name: &str, value: &str) -> Result<Option<u32>, String> {
    let last = match value.strip_prefix("-k1") {
        Some("") => return Ok(None),
        Some(rest) => rest.strip_prefix(','),
        None => None,
    };
    let last = last
        .and_then(|last| last.parse().ok())
        .filter(|last| *last > 0);
    last.map(Some)
        .ok_or_else(|| refused(name, value, "expected -k1,N for the first N fields"))
}

/// The order of Hadoop's comparator by fields, which has the options of `sort`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Order {
    /// For fields without flags.
    flags: String,
    keys: Vec<OrderKey>,
}

/// `-kFROM[,TO]` with flags.
#[derive(Debug, PartialEq, Eq)]
struct OrderKey {
    from: String,
    to: Option<String>,
    flags: String,
}

impl Order {
    /// Parses options such as `-k1,1 -k2,2nr`.
    fn read(options: &str) -> Option<Order> {
        let mut order = Order {
            flags: String::new(),
            keys: Vec::new(),
        };
        for option in options.split_whitespace() {
            let option = option.strip_prefix('-')?;
            match option.strip_prefix('k') {
                Some(key) => order.keys.push(OrderKey::read(key)?),
                None => order
                    .flags
                    .push_str(flags(option).filter(|flags| !flags.is_empty())?),
            }
        }
        Some(order)
    }

    /// Returns a reducer command with a `sort` in front. A failing `sort` ends the shell, except for status 141
    /// (SIGPIPE), when the reducer stops reading early.
    pub(super) fn before(&self, reducer: &str, separator: u8, key_fields: u32) -> String {
        let separator = format!(
            "'{}'",
            char::from(separator).to_string().replace('\'', r"'\''")
        );
        let mut options = String::new();
        for OrderKey { from, to, flags } in &self.keys {
            let to = to.clone().unwrap_or_else(|| key_fields.to_string());
            let flags = if flags.is_empty() { &self.flags } else { flags };
            options.push_str(&format!(" -k {from},{to}{flags}"));
        }
        if self.keys.is_empty() {
            options = format!(" -k 1,{key_fields}{}", self.flags);
        }
        format!(
            "{{ LC_ALL=C sort -s -S 64M -T . -t {separator}{options} || case $? in 141) ;; *) kill $$ ;; esac; }} | (\n{reducer}\n)"
        )
    }
}

impl OrderKey {
    fn read(text: &str) -> Option<OrderKey> {
        let (from, to) = text
            .split_once(',')
            .map_or((text, None), |(from, to)| (from, Some(to)));
        let (from, first) = field(from)?;
        let (to, second) = to.map(field).map_or(Some((None, "")), |field| {
            field.map(|(to, flags)| (Some(to), flags))
        })?;
        Some(OrderKey {
            from: from.to_owned(),
            to: to.map(str::to_owned),
            flags: format!("{first}{second}"),
        })
    }
}

/// Splits `FIELD[.CHARACTER]` and flags.
fn field(text: &str) -> Option<(&str, &str)> {
    let end = text
        .find(|letter: char| !letter.is_ascii_digit() && letter != '.')
        .unwrap_or(text.len());
    let (place, rest) = text.split_at(end);
    let mut numbers = place.split('.');
    let is_number =
        |number: Option<&str>| number.is_some_and(|number| number.parse::<u32>().is_ok());
    let is_field =
        is_number(numbers.next()) && numbers.next().is_none_or(|next| is_number(Some(next)));
    (is_field && numbers.next().is_none()).then_some((place, flags(rest)?))
}

fn flags(text: &str) -> Option<&str> {
    text.chars()
        .all(|letter| "nr".contains(letter))
        .then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_that_tune_hadoop_are_accepted_with_a_note() {
        for name in [
            "mapreduce.map.output.compress",
            "mapreduce.map.output.compress.codec",
            "mapreduce.map.memory.mb",
            "mapreduce.reduce.java.opts",
            "mapred.compress.map.output",
            "mapreduce.job.maps",
            "mapreduce.reduce.speculative",
            "mapreduce.task.io.sort.mb",
            "mapreduce.output.fileoutputformat.compress",
            "dfs.replication",
            "yarn.app.mapreduce.am.resource.mb",
        ] {
            assert!(
                matches!(meaning(name, "1"), Ok(Meaning::WithoutEffect(_))),
                "{name}"
            );
        }
    }

    #[test]
    fn properties_that_change_results_are_rejected_with_reason() {
        for (name, value, part) in [
            ("mapreduce.job.inputformat.class", "X", "may change results"),
            (
                "mapreduce.map.failures.maxpercent",
                "5",
                "its whole output or fails",
            ),
            ("stream.non.zero.exit.is.failure", "false", "CMD || true"),
            ("stream.map.output.field.separator", "::", "one byte"),
            (
                "stream.reduce.output.field.separator",
                ",",
                "their lines are the output",
            ),
            (
                "mapreduce.job.output.key.comparator.class",
                "com.example.Own",
                "compared as bytes",
            ),
            (
                "mapreduce.partition.keycomparator.options",
                "-k1,1 -M",
                "expected -n, -r",
            ),
            (
                "textinputformat.record.delimiter",
                "|",
                "may change results",
            ),
        ] {
            let error = meaning(name, value).expect_err(name);
            assert!(error.contains(part), "{error}");
        }
        assert_eq!(
            meaning("mapreduce.map.failures.maxpercent", "0"),
            Ok(Meaning::Default)
        );
    }

    #[test]
    fn other_properties_become_variables() {
        assert_eq!(
            meaning("my.least-count", "3"),
            Ok(Meaning::Variable("my_least_count".to_owned()))
        );
    }

    #[test]
    fn order_by_fields_becomes_options_of_sort() {
        for (options, expected) in [
            ("-k1,1 -k2,2nr", " -k 1,1 -k 2,2nr"),
            ("-n", " -k 1,3n"),
            ("-nr -k2", " -k 2,3nr"),
            ("-k1.2,1.4n -k3r", " -k 1.2,1.4n -k 3,3r"),
        ] {
            let order = Order::read(options).expect("an order");
            let script = order.before("cat", b',', 3);
            assert!(
                script.contains(&format!("-t ','{expected} ||")),
                "{options}: {script}"
            );
        }
        for wrong in [
            "k1", "-k", "-kx", "-k1,", "-k1.", "-k1.2.3", "-", "-k1b", "-k1,1 x",
        ] {
            assert_eq!(Order::read(wrong), None, "{wrong}");
        }
    }
}
