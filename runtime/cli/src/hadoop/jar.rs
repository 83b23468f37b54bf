//! `nap hadoop jar`: translates options of Hadoop streaming to those of `nap streaming`; rejects unknown ones.

use super::properties::{Meaning, Order, meaning};
use super::root::HadoopRoot;

const NONE: &str = "NONE";

/// Formats and partitioners of Hadoop that equal the defaults here.
const PLAIN: [&str; 6] = [
    "org.apache.hadoop.mapred.TextInputFormat",
    "org.apache.hadoop.mapred.TextOutputFormat",
    "org.apache.hadoop.mapred.lib.HashPartitioner",
    "TextInputFormat",
    "TextOutputFormat",
    "HashPartitioner",
];

/// Names of the partitioner by key fields.
const BY_FIELDS: [&str; 3] = [
    "org.apache.hadoop.mapred.lib.KeyFieldBasedPartitioner",
    "org.apache.hadoop.mapreduce.lib.partition.KeyFieldBasedPartitioner",
    "KeyFieldBasedPartitioner",
];

/// Hadoop's variables for the input file of a mapper.
const INPUT_VARIABLES: &str = "export mapreduce_map_input_file=\"$NAPREDUCE_INPUT_FILE\" map_input_file=\"$NAPREDUCE_INPUT_FILE\"\n";

/// Options with a value.
const OPTIONS: [&str; 14] = [
    "-D",
    "-cmdenv",
    "-combiner",
    "-file",
    "-files",
    "-input",
    "-inputformat",
    "-jobconf",
    "-mapper",
    "-numReduceTasks",
    "-output",
    "-outputformat",
    "-partitioner",
    "-reducer",
];

const IDENTITY_REDUCER: &str = "org.apache.hadoop.mapred.lib.IdentityReducer";

#[derive(Default)]
struct StreamingJob {
    /// Translated options.
    options: Vec<String>,
    /// Names of side files.
    names: Vec<String>,
    environment: Vec<String>,
    reduces: Option<u32>,
    /// The partitioner of the job is Hadoop's by fields of the key.
    is_by_fields: bool,
    partition_fields: Option<u32>,
    /// The comparator of the job is Hadoop's by fields of the key.
    is_ordered_by_fields: bool,
    order: Option<Order>,
    key_fields: Option<u32>,
    /// Separators of the fields of a mapper's lines, and of a key.
    separator: Option<u8>,
    key_separator: Option<u8>,
    mapper: Option<String>,
    combiner: Option<String>,
    reducer: Option<String>,
    /// Accepted options without effect.
    notes: Vec<String>,
}

/// Options of `nap streaming`, and notes to print.
#[derive(Debug)]
pub(super) struct Streaming {
    pub(super) options: Vec<String>,
    pub(super) notes: Vec<String>,
}

/// Translates `ANY.jar OPTIONS`.
pub(super) fn as_streaming(root: &HadoopRoot, arguments: &[String]) -> Result<Streaming, String> {
    let Some((_jar, mut rest)) = arguments.split_first() else {
        return Err(
            "jar: expected the name of any jar, and the options of a streaming job".to_owned(),
        );
    };
    let mut job = StreamingJob::default();
    while let Some((word, behind)) = rest.split_first() {
        rest = behind;
        // Hadoop accepts two dashes for one.
        let option = if word.starts_with("--") {
            &word[1..]
        } else {
            word
        };
        if ["-verbose", "-background", "-debug"].contains(&option) {
            continue;
        }
        if let Some(property) = option
            .strip_prefix("-D")
            .filter(|property| !property.is_empty())
        {
            job.property(property)?;
            continue;
        }
        let value = rest.first().filter(|value| !is_option(value));
        match value {
            Some(value) => job.take(root, option, value)?,
            None if OPTIONS.contains(&option) => return Err(format!("{option}: expected a value")),
            None => return Err(unknown(option)),
        }
        rest = &rest[1..];
    }
    job.into_streaming()
}

fn is_option(word: &str) -> bool {
    let word = if word.starts_with("--") {
        &word[1..]
    } else {
        word
    };
    OPTIONS.contains(&word) || word == "-verbose" || (word.starts_with("-D") && word.contains('='))
}

fn unknown(option: &str) -> String {
    format!("{option}: not supported; see: nap hadoop --help")
}

impl StreamingJob {
    fn take(&mut self, root: &HadoopRoot, option: &str, value: &str) -> Result<(), String> {
        match option {
            "-input" => {
                for one in paths(value) {
                    self.pass("--input", path(&root.file(one)?)?);
                }
            }
            "-output" => self.pass("--output", path(&root.file(value)?)?),
            "-files" | "-file" => {
                for file in value.split(',') {
                    self.side_file(root, file)?;
                }
            }
            "-mapper" => self.mapper = Some(command(option, value)?),
            "-combiner" => self.combiner = Some(command(option, value)?),
            "-reducer" if value == IDENTITY_REDUCER => self.reducer = Some("cat".to_owned()),
            "-reducer" => self.reducer = Some(command(option, value)?),
            "-numReduceTasks" => self.reduces = Some(number(option, value)?),
            "-cmdenv" => {
                let (name, value) = value
                    .split_once('=')
                    .ok_or_else(|| format!("-cmdenv {value}: expected NAME=VALUE"))?;
                self.export(name, value);
            }
            "-D" | "-jobconf" => self.property(value)?,
            "-inputformat" | "-outputformat" | "-partitioner" if PLAIN.contains(&value) => {}
            "-partitioner" if BY_FIELDS.contains(&value) => self.is_by_fields = true,
            _ => return Err(unknown(&format!("{option} {value}"))),
        }
        Ok(())
    }

    fn pass(&mut self, option: &str, value: String) {
        self.options.extend([option.to_owned(), value]);
    }

    fn export(&mut self, name: &str, value: &str) {
        self.environment.push(format!(
            "export {name}='{}'\n",
            value.replace('\'', r"'\''")
        ));
    }

    fn side_file(&mut self, root: &HadoopRoot, file: &str) -> Result<(), String> {
        let (from, name) = file.rsplit_once('#').unwrap_or((file, ""));
        let from = path(&root.local_file(from)?)?;
        let name = if name.is_empty() {
            from.rsplit('/').next().unwrap_or_default()
        } else {
            name
        };
        self.names.push(name.to_owned());
        let escaped = |text: &str| {
            text.replace('\\', r"\\")
                .replace(',', r"\,")
                .replace('#', r"\#")
        };
        let argument = format!("{}#{}", escaped(&from), escaped(name));
        self.pass("--files", argument);
        Ok(())
    }

    fn property(&mut self, text: &str) -> Result<(), String> {
        let (name, value) = text
            .split_once('=')
            .ok_or_else(|| format!("-D {text}: expected NAME=VALUE"))?;
        match meaning(name, value)? {
            Meaning::Option(option, value) => self.pass(option, value),
            Meaning::Flag(option) => self.options.push(option.to_owned()),
            Meaning::Reduces(count) => self.reduces = Some(count),
            Meaning::KeyFields(count) => self.key_fields = Some(count),
            Meaning::PartitionFields(count) => self.partition_fields = count,
            Meaning::OrderedByFields => self.is_ordered_by_fields = true,
            Meaning::Order(order) => self.order = Some(order),
            Meaning::Separator(byte) => self.separator = Some(byte),
            Meaning::KeySeparator(byte) => self.key_separator = Some(byte),
            Meaning::Variable(name) => self.export(&name, value),
            Meaning::Default => {}
            Meaning::WithoutEffect(why) => self
                .notes
                .push(format!("-D {name} has no effect here: {why}")),
        }
        Ok(())
    }

    fn into_streaming(mut self) -> Result<Streaming, String> {
        let mapper = self
            .mapper
            .take()
            .ok_or("no mapper; give -mapper COMMAND")?;
        // Hadoop's default: one reduce that copies its input.
        let reducer = self.reducer.take().unwrap_or_else(|| "cat".to_owned());
        let reduces = if reducer == NONE {
            0
        } else {
            self.reduces.unwrap_or(1)
        };
        let separator = self.separator.unwrap_or(b'\t');
        if let Some(count) = self.key_fields {
            self.pass("--key-fields", count.to_string());
        }
        if separator != b'\t' {
            if reduces == 0 || self.combiner.is_some() {
                return Err(
                    "-D stream.map.output.field.separator: only supported with a reducer and without a combiner"
                        .to_owned(),
                );
            }
            self.pass("--separator", char::from(separator).to_string());
        }
        // With another separator the key is one field.
        let has_fields = self.key_separator.unwrap_or(b'\t') == separator;
        if reduces > 0 && self.is_ordered_by_fields && !has_fields {
            return Err(
                "KeyFieldBasedComparator: fields of keys and of lines must have the same separator; set \
                 mapreduce.map.output.key.field.separator to stream.map.output.field.separator"
                    .to_owned(),
            );
        }
        let environment = self.environment.concat();
        let command = |text: &str| format!("{environment}{}", with_side_file(text, &self.names));
        let mapper = format!("{INPUT_VARIABLES}{}", command(&mapper));
        let combiner = self.combiner.as_deref().map(command);
        let mut reducer = command(&reducer);
        if let Some(order) = self.order.as_ref().filter(|_| self.is_ordered_by_fields) {
            reducer = order.before(&reducer, separator, self.key_fields.unwrap_or(1));
        }
        self.pass("--mapper", mapper);
        if reduces > 0 {
            if let Some(combiner) = combiner {
                self.pass("--combiner", combiner);
            }
            self.pass("--reducer", reducer);
            self.pass("--reduces", reduces.to_string());
            // Without this partitioner Hadoop ignores the number.
            if let (true, true, Some(fields)) =
                (self.is_by_fields, has_fields, self.partition_fields)
            {
                self.pass("--partition-fields", fields.to_string());
            }
        }
        Ok(Streaming {
            options: self.options,
            notes: self.notes,
        })
    }
}

/// Splits paths at commas outside of braces, which belong to patterns.
fn paths(value: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_u32;
    let divides = move |letter: char| {
        match letter {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        letter == ',' && depth == 0
    };
    value.split(divides).filter(|path| !path.is_empty())
}

/// Returns a command. Fails for class names of Hadoop.
fn command(option: &str, value: &str) -> Result<String, String> {
    let is_class = value.starts_with("org.apache.hadoop.") || value == "aggregate";
    if is_class {
        Err(format!(
            "{option} {value}: Java classes are not supported; give a command, such as cat"
        ))
    } else {
        Ok(value.to_owned())
    }
}

/// Prefixes `./` to a command that begins with the name of a side file.
fn with_side_file(command: &str, names: &[String]) -> String {
    let first = command.split_whitespace().next().unwrap_or_default();
    if names.iter().any(|name| name == first) {
        format!("./{}", command.trim_start())
    } else {
        command.to_owned()
    }
}

fn path(file: &std::path::Path) -> Result<String, String> {
    file.to_str()
        .map(str::to_owned)
        .ok_or_else(|| format!("{}: not UTF-8", file.display()))
}

fn number(name: &str, value: &str) -> Result<u32, String> {
    value
        .parse()
        .map_err(|_| format!("{name} {value}: expected an integer"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translate(line: &[&str]) -> Result<Vec<String>, String> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let root = HadoopRoot::new(folder.path(), "ann").expect("a folder");
        let arguments: Vec<String> = line.iter().map(|word| (*word).to_owned()).collect();
        let options = as_streaming(&root, &arguments)?.options;
        let folder = folder.path().to_str().expect("a path of letters");
        Ok(options
            .into_iter()
            .map(|option| option.replace(folder, "ROOT"))
            .collect())
    }

    #[test]
    fn options_of_mrjob_become_a_streaming_job() {
        let line = [
            "any.jar",
            "-files",
            "hdfs:///wd/a.zip#a.zip,hdfs:///wd/job.py#job.py",
            "-D",
            "mapreduce.job.name=count",
            "-input",
            "hdfs:///in.txt",
            "-output",
            "hdfs:///out",
            "-mapper",
            "job.py --mapper",
            "-combiner",
            "python3 job.py --combiner",
            "-reducer",
            "python3 job.py --reducer",
            "-numReduceTasks",
            "3",
        ];
        let mapper = format!("{INPUT_VARIABLES}./job.py --mapper");
        let expected = [
            "--files",
            "ROOT/wd/a.zip#a.zip",
            "--files",
            "ROOT/wd/job.py#job.py",
            "--name",
            "count",
            "--input",
            "ROOT/in.txt",
            "--output",
            "ROOT/out",
            "--mapper",
            &mapper,
            "--combiner",
            "python3 job.py --combiner",
            "--reducer",
            "python3 job.py --reducer",
            "--reduces",
            "3",
        ];
        assert_eq!(translate(&line).expect("all is known"), expected);
    }

    #[test]
    fn default_reducer_is_cat_unless_reduces_are_zero() {
        let start = ["any.jar", "-mapper", "cut -f 1"];
        let options = |more: &[&str]| translate(&[&start, more].concat()).expect("all is known");
        assert_eq!(
            options(&[
                "-D",
                "mapreduce.job.reduces=0",
                "-combiner",
                "x",
                "-reducer",
                "y"
            ])
            .len(),
            2
        );
        assert_eq!(options(&["-reducer", "NONE"]).len(), 2);
        assert_eq!(options(&[])[2..], ["--reducer", "cat", "--reduces", "1"]);
        let with_variable = options(&["-cmdenv", "WHO=it's"]);
        assert_eq!(with_variable[3], "export WHO='it'\\''s'\ncat");
    }

    #[test]
    fn options_have_the_spellings_of_hadoop() {
        let start = ["any.jar", "--mapper", "cat"];
        let options = |more: &[&str]| {
            let options = translate(&[&start, more].concat()).expect("all is known");
            options.join(" ").replace(INPUT_VARIABLES, "")
        };
        let with = |before: &str, reduces: u32| {
            format!("{before}--mapper cat --reducer cat --reduces {reduces}")
        };
        assert_eq!(options(&["-Dmapreduce.job.reduces=2"]), with("", 2));
        assert_eq!(
            options(&["-jobconf", "mapred.reduce.tasks=2", "-verbose"]),
            with("", 2)
        );
        let two = "--input ROOT/a --input ROOT/b{c,d} ";
        assert_eq!(options(&["-input", "/a,/b{c,d}"]), with(two, 1));
        assert_eq!(
            options(&["-D", "my.least=3"]),
            "--mapper export my_least='3'\ncat --reducer export my_least='3'\ncat --reduces 1"
        );
        assert_eq!(options(&["-reducer", IDENTITY_REDUCER]), with("", 1));
    }

    #[test]
    fn separators_and_orders_of_keys_are_translated() {
        let start = [
            "any.jar",
            "-mapper",
            "cat",
            "-D",
            "stream.num.map.output.key.fields=2",
        ];
        let options = |more: &[&str]| {
            let options = translate(&[&start, more].concat()).expect("all is known");
            options.join(" ").replace(INPUT_VARIABLES, "")
        };
        let comma = [
            "-D",
            "stream.map.output.field.separator=,",
            "-D",
            "map.output.key.field.separator=,",
        ];
        let by_first = [
            "-partitioner",
            "KeyFieldBasedPartitioner",
            "-D",
            "num.key.fields.for.partition=1",
        ];
        let plain = "--key-fields 2 --separator , --mapper cat --reducer cat --reduces 1";
        assert_eq!(
            options(&[comma, by_first].concat()),
            format!("{plain} --partition-fields 1")
        );
        // Fields of keys are divided by TAB then, and such a key has one.
        assert_eq!(options(&[&comma[..2], &by_first].concat()), plain);
        let order = [
            "-D",
            "mapreduce.job.output.key.comparator.class=org.apache.hadoop.mapreduce.lib.partition.KeyFieldBasedComparator",
            "-D",
            "mapreduce.partition.keycomparator.options=-k1,1 -k2,2nr",
        ];
        assert!(options(&[comma, order].concat()).contains("-t ',' -k 1,1 -k 2,2nr ||"));
        assert!(!options(&order[2..]).contains("sort"));
    }

    #[test]
    fn partition_fields_require_the_partitioner() {
        let start = [
            "any.jar",
            "-mapper",
            "cat",
            "-D",
            "stream.num.map.output.key.fields=3",
        ];
        let options = |more: &[&str]| {
            translate(&[&start, more].concat()).expect("all is known")[..]
                .join(" ")
                .replace(INPUT_VARIABLES, "")
        };
        let partitioner = [
            "-partitioner",
            "org.apache.hadoop.mapred.lib.KeyFieldBasedPartitioner",
        ];
        let plain = "--key-fields 3 --mapper cat --reducer cat --reduces 1";
        let property = ["-D", "mapreduce.partition.keypartitioner.options=-k1,2"];
        assert_eq!(options(&property), plain);
        assert_eq!(options(&partitioner), plain);
        assert_eq!(
            options(&[property, partitioner].concat()),
            format!("{plain} --partition-fields 2")
        );
        let older = ["-D", "num.key.fields.for.partition=1"];
        assert_eq!(
            options(&[older, partitioner].concat()),
            format!("{plain} --partition-fields 1")
        );
        let whole = ["-D", "mapred.text.key.partitioner.options=-k1"];
        assert_eq!(options(&[whole, partitioner].concat()), plain);
    }

    #[test]
    fn unsupported_options_are_rejected_by_name() {
        for (line, part) in [
            (&["any.jar"][..], "no mapper; give -mapper"),
            (&[], "expected the name of any jar"),
            (
                &["any.jar", "-nosuch", "-mapper", "cat"],
                "-nosuch: not supported",
            ),
            (
                &["any.jar", "-mapper", "-reducer", "cat"],
                "-mapper: expected a value",
            ),
            (
                &["any.jar", "-input", "-Dmapreduce.job.reduces=2"],
                "-input: expected a value",
            ),
            (
                &["any.jar", "-reducer", "aggregate"],
                "Java classes are not supported",
            ),
            (
                &["any.jar", "-libjars", "x.jar"],
                "-libjars x.jar: not supported",
            ),
            (
                &["any.jar", "-archives", "x.zip"],
                "-archives x.zip: not supported",
            ),
            (
                &["any.jar", "-inputformat", "com.example.Own"],
                "-inputformat com.example.Own: not supported",
            ),
            (
                &["any.jar", "-partitioner", "com.example.Own"],
                "-partitioner com.example.Own: not supported",
            ),
            (
                &["any.jar", "-D", "stream.num.map.output.key.fields=x"],
                "expected an integer",
            ),
            (
                &[
                    "any.jar",
                    "-D",
                    "mapreduce.partition.keypartitioner.options=-k2,2",
                ],
                "expected -k1,N for the first N fields",
            ),
            (
                &[
                    "any.jar",
                    "-mapper",
                    "cat",
                    "-D",
                    "stream.map.output.field.separator=,",
                    "-combiner",
                    "cat",
                ],
                "without a combiner",
            ),
            (
                &["any.jar", "-D", "mapreduce.job.reduces=few"],
                "expected an integer",
            ),
            (&["any.jar", "-mapper"], "-mapper: expected a value"),
            (&["any.jar", "-input", "s3://a/b"], "unsupported scheme s3"),
        ] {
            let error = translate(line).expect_err(part);
            assert!(error.contains(part), "{error}");
        }
    }
}
