//! `nap hadoop jar`: options of Hadoop's streaming as those of `nap streaming`.
//!
//! Owns which options and properties are known, and what they are called here; all others are refused by
//! name. Does not own the job.

use super::root::HadoopRoot;

const NONE: &str = "NONE";

/// Formats of Hadoop that are what is done anyway.
const PLAIN: [&str; 6] = [
    "org.apache.hadoop.mapred.TextInputFormat",
    "org.apache.hadoop.mapred.TextOutputFormat",
    "org.apache.hadoop.mapred.lib.HashPartitioner",
    "TextInputFormat",
    "TextOutputFormat",
    "HashPartitioner",
];

/// Lines go to the same reduce when some fields of their keys are the same.
const BY_FIELDS: [&str; 3] = [
    "org.apache.hadoop.mapred.lib.KeyFieldBasedPartitioner",
    "org.apache.hadoop.mapreduce.lib.partition.KeyFieldBasedPartitioner",
    "KeyFieldBasedPartitioner",
];

/// Mappers find the name of their file under these names of Hadoop, too.
const INPUT_VARIABLES: &str =
    "export mapreduce_map_input_file=\"$NAPREDUCE_INPUT_FILE\" map_input_file=\"$NAPREDUCE_INPUT_FILE\"\n";

#[derive(Default)]
struct StreamingJob {
    /// Options that are passed on.
    options: Vec<String>,
    /// Names of side files.
    names: Vec<String>,
    environment: Vec<String>,
    reduces: Option<u32>,
    /// The partitioner of the job is Hadoop's by fields of the key.
    is_by_fields: bool,
    partition_fields: Option<u32>,
    mapper: Option<String>,
    combiner: Option<String>,
    reducer: Option<String>,
}

/// The options of `nap streaming` for `ANY.jar OPTIONS`.
pub(super) fn as_streaming(root: &HadoopRoot, arguments: &[String]) -> Result<Vec<String>, String> {
    let Some((_jar, mut rest)) = arguments.split_first() else {
        return Err("jar needs the name of a jar, any one, and the options of a streaming job".to_owned());
    };
    let mut job = StreamingJob::default();
    while let Some((option, behind)) = rest.split_first() {
        if option == "-verbose" {
            rest = behind;
            continue;
        }
        let (value, behind) =
            behind.split_first().ok_or_else(|| format!("{option} needs a value, or is not known"))?;
        job.take(root, option, value)?;
        rest = behind;
    }
    job.into_options()
}

impl StreamingJob {
    fn take(&mut self, root: &HadoopRoot, option: &str, value: &str) -> Result<(), String> {
        match option {
            "-input" => self.pass("--input", path(&root.file(value)?)?),
            "-output" => self.pass("--output", path(&root.file(value)?)?),
            "-files" | "-file" => {
                for file in value.split(',') {
                    self.side_file(root, file)?;
                }
            }
            "-mapper" => self.mapper = Some(value.to_owned()),
            "-combiner" => self.combiner = Some(value.to_owned()),
            "-reducer" => self.reducer = Some(value.to_owned()),
            "-numReduceTasks" => self.reduces = Some(number(option, value)?),
            "-cmdenv" => {
                let (name, value) =
                    value.split_once('=').ok_or_else(|| format!("-cmdenv {value}: NAME=VALUE is needed"))?;
                self.environment.push(format!("export {name}='{}'\n", value.replace('\'', r"'\''")));
            }
            "-D" => self.property(value)?,
            "-inputformat" | "-outputformat" | "-partitioner" if PLAIN.contains(&value) => {}
            "-partitioner" if BY_FIELDS.contains(&value) => self.is_by_fields = true,
            _ => return Err(format!("{option} {value} is not known; see: nap hadoop --help")),
        }
        Ok(())
    }

    fn pass(&mut self, option: &str, value: String) {
        self.options.extend([option.to_owned(), value]);
    }

    fn side_file(&mut self, root: &HadoopRoot, file: &str) -> Result<(), String> {
        let (from, name) = file.rsplit_once('#').unwrap_or((file, ""));
        let from = path(&root.local_file(from)?)?;
        let name = if name.is_empty() { from.rsplit('/').next().unwrap_or_default() } else { name };
        self.names.push(name.to_owned());
        let escaped = |text: &str| text.replace('\\', r"\\").replace(',', r"\,").replace('#', r"\#");
        let argument = format!("{}#{}", escaped(&from), escaped(name));
        self.pass("--files", argument);
        Ok(())
    }

    fn property(&mut self, text: &str) -> Result<(), String> {
        let (name, value) = text.split_once('=').ok_or_else(|| format!("-D {text}: NAME=VALUE is needed"))?;
        match name {
            "mapreduce.job.reduces" | "mapred.reduce.tasks" => self.reduces = Some(number(name, value)?),
            "mapreduce.job.name" | "mapred.job.name" => self.pass("--name", value.to_owned()),
            "mapreduce.job.queuename" | "mapred.job.queue.name" => self.pass("--queue", value.to_owned()),
            "mapreduce.map.maxattempts" | "mapreduce.reduce.maxattempts" => {
                self.pass("--conf", format!("attempts-max={value}"));
            }
            "mapreduce.task.timeout" | "mapred.task.timeout" => {
                self.pass("--conf", format!("task-timeout={}s", number(name, value)?.div_ceil(1000)));
            }
            "mapreduce.job.reduce.slowstart.completedmaps" => {
                self.pass("--conf", format!("slowstart={value}"))
            }
            "stream.num.map.output.key.fields" => {
                self.pass("--key-fields", number(name, value)?.to_string());
            }
            "num.key.fields.for.partition" => self.partition_fields = Some(number(name, value)?),
            "mapreduce.partition.keypartitioner.options" | "mapred.text.key.partitioner.options" => {
                self.partition_fields = first_fields(name, value)?;
            }
            "stream.map.output.field.separator"
            | "mapreduce.map.output.key.field.separator"
            | "map.output.key.field.separator"
                if value == "\t" => {}
            _ => return Err(format!("-D {name} is not known; leave it out, or see: nap hadoop --help")),
        }
        Ok(())
    }

    fn into_options(self) -> Result<Vec<String>, String> {
        let StreamingJob { mut options, names, environment, reduces, mapper, combiner, reducer, .. } = self;
        let mapper = mapper.ok_or("-mapper is missing")?;
        let environment = environment.concat();
        let command = |text: &str| format!("{environment}{}", beside(text, &names));
        options.extend(["--mapper".to_owned(), format!("{INPUT_VARIABLES}{}", command(&mapper))]);
        // As in Hadoop: one reduce, and what it reads is what it writes.
        let reducer = reducer.unwrap_or_else(|| "cat".to_owned());
        match reduces.unwrap_or(1) {
            0 => {}
            _ if reducer == NONE => {}
            reduces => {
                if let Some(combiner) = combiner {
                    options.extend(["--combiner".to_owned(), command(&combiner)]);
                }
                options.extend(["--reducer".to_owned(), command(&reducer)]);
                options.extend(["--reduces".to_owned(), reduces.to_string()]);
                // Without that partitioner Hadoop does not look at the number.
                if let (true, Some(fields)) = (self.is_by_fields, self.partition_fields) {
                    options.extend(["--partition-fields".to_owned(), fields.to_string()]);
                }
            }
        }
        Ok(options)
    }
}

/// A command that begins with the name of a side file begins with that file.
fn beside(command: &str, names: &[String]) -> String {
    let first = command.split_whitespace().next().unwrap_or_default();
    if names.iter().any(|name| name == first) {
        format!("./{}", command.trim_start())
    } else {
        command.to_owned()
    }
}

fn path(file: &std::path::Path) -> Result<String, String> {
    file.to_str().map(str::to_owned).ok_or_else(|| format!("{} is no UTF-8", file.display()))
}

/// How many fields `-k1,N` means; `-k1` is all of the key.
fn first_fields(name: &str, value: &str) -> Result<Option<u32>, String> {
    let last = match value.strip_prefix("-k1") {
        Some("") => return Ok(None),
        Some(rest) => rest.strip_prefix(','),
        None => None,
    };
    let last = last.and_then(|last| last.parse().ok()).filter(|last| *last > 0);
    last.map(Some).ok_or_else(|| format!("-D {name}={value} is not known; -k1,N is, for the first N fields"))
}

fn number(name: &str, value: &str) -> Result<u32, String> {
    value.parse().map_err(|_| format!("{name} {value}: a whole number is needed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translate(line: &[&str]) -> Result<Vec<String>, String> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let root = HadoopRoot::new(folder.path(), "ann").expect("a folder");
        let arguments: Vec<String> = line.iter().map(|word| (*word).to_owned()).collect();
        let options = as_streaming(&root, &arguments)?;
        let folder = folder.path().to_str().expect("a path of letters");
        Ok(options.into_iter().map(|option| option.replace(folder, "ROOT")).collect())
    }

    #[test]
    fn what_mrjob_says_becomes_a_streaming_job() {
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
    fn without_reduces_there_is_no_reducer_and_with_none_named_it_is_cat() {
        let start = ["any.jar", "-mapper", "cut -f 1"];
        let options = |more: &[&str]| translate(&[&start, more].concat()).expect("all is known");
        assert_eq!(options(&["-D", "mapreduce.job.reduces=0", "-combiner", "x", "-reducer", "y"]).len(), 2);
        assert_eq!(options(&["-reducer", "NONE"]).len(), 2);
        assert_eq!(options(&[])[2..], ["--reducer", "cat", "--reduces", "1"]);
        let with_variable = options(&["-cmdenv", "WHO=it's"]);
        assert_eq!(with_variable[3], "export WHO='it'\\''s'\ncat");
    }

    #[test]
    fn fields_of_keys_divide_them_where_that_partitioner_is_named() {
        let start = ["any.jar", "-mapper", "cat", "-D", "stream.num.map.output.key.fields=3"];
        let options = |more: &[&str]| {
            translate(&[&start, more].concat()).expect("all is known")[..]
                .join(" ")
                .replace(INPUT_VARIABLES, "")
        };
        let partitioner = ["-partitioner", "org.apache.hadoop.mapred.lib.KeyFieldBasedPartitioner"];
        let plain = "--key-fields 3 --mapper cat --reducer cat --reduces 1";
        let property = ["-D", "mapreduce.partition.keypartitioner.options=-k1,2"];
        assert_eq!(options(&property), plain);
        assert_eq!(options(&partitioner), plain);
        assert_eq!(options(&[property, partitioner].concat()), format!("{plain} --partition-fields 2"));
        let older = ["-D", "num.key.fields.for.partition=1"];
        assert_eq!(options(&[older, partitioner].concat()), format!("{plain} --partition-fields 1"));
        let whole = ["-D", "mapred.text.key.partitioner.options=-k1"];
        assert_eq!(options(&[whole, partitioner].concat()), plain);
    }

    #[test]
    fn what_is_not_known_is_refused_by_name() {
        for (line, part) in [
            (&["any.jar"][..], "-mapper is missing"),
            (&[], "jar needs the name of a jar"),
            (&["any.jar", "-libjars", "x.jar"], "-libjars x.jar is not known"),
            (&["any.jar", "-archives", "x.zip"], "-archives x.zip is not known"),
            (&["any.jar", "-inputformat", "com.example.Own"], "-inputformat com.example.Own is not known"),
            (&["any.jar", "-partitioner", "com.example.Own"], "-partitioner com.example.Own is not known"),
            (&["any.jar", "-D", "stream.num.map.output.key.fields=x"], "a whole number is needed"),
            (
                &["any.jar", "-D", "mapreduce.partition.keypartitioner.options=-k2,2"],
                "-k1,N is, for the first N fields",
            ),
            (
                &["any.jar", "-D", "stream.map.output.field.separator=,"],
                "-D stream.map.output.field.separator is not known",
            ),
            (&["any.jar", "-D", "mapreduce.job.reduces=few"], "a whole number is needed"),
            (&["any.jar", "-mapper"], "-mapper needs a value"),
            (&["any.jar", "-input", "s3://a/b"], "files of s3: are not known"),
        ] {
            let error = translate(line).expect_err(part);
            assert!(error.contains(part), "{error}");
        }
    }
}
