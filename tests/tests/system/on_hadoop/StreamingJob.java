import java.io.BufferedReader;
import java.io.BufferedOutputStream;
import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configured;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.io.Writable;
import org.apache.hadoop.mapred.FileInputFormat;
import org.apache.hadoop.mapred.FileOutputFormat;
import org.apache.hadoop.mapred.JobClient;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapred.Mapper;
import org.apache.hadoop.mapred.OutputCollector;
import org.apache.hadoop.mapred.Reducer;
import org.apache.hadoop.mapred.Reporter;
import org.apache.hadoop.mapred.lib.NLineInputFormat;
import org.apache.hadoop.util.Tool;
import org.apache.hadoop.util.ToolRunner;

/**
 * Hadoop's own map task, partitioner, sort, reduce task and output around commands of a job program. The streaming jar is
 * not to be had from PyPI, so the pipes between a task and its command are written here, as streaming has them: a key and a
 * value in typed bytes are one object each, with code and length, and hashed and sorted as those bytes.
 */
public class StreamingJob extends Configured implements Tool {
    /** A command with pipes to it. */
    static class Piped {
        final Process process;
        final DataOutputStream to;
        final DataInputStream from;

        Piped(JobConf conf, String command) throws IOException {
            ProcessBuilder builder = new ProcessBuilder(command.split(" "));
            builder.environment().put("mapreduce_task_attempt_id", conf.get("mapreduce.task.attempt.id"));
            builder.environment().put("mapreduce_task_partition", conf.get("mapreduce.task.partition"));
            builder.redirectError(ProcessBuilder.Redirect.INHERIT);
            process = builder.start();
            to = new DataOutputStream(new BufferedOutputStream(process.getOutputStream()));
            from = new DataInputStream(new BufferedInputStream(process.getInputStream()));
        }

        /** The next object with its code and length, or null at the end. */
        BytesWritable object() throws IOException {
            int code = from.read();
            if (code < 0) {
                return null;
            }
            if (code != 0) {
                throw new IOException("an object of code " + code);
            }
            int length = from.readInt();
            byte[] bytes = new byte[5 + length];
            for (int at = 0; at < 4; at++) {
                bytes[1 + at] = (byte) (length >>> (24 - 8 * at));
            }
            from.readFully(bytes, 5, length);
            return new BytesWritable(bytes);
        }

        void finish() throws IOException {
            try {
                int status = process.waitFor();
                if (status != 0) {
                    throw new IOException("subprocess failed with code " + status);
                }
            } catch (InterruptedException interrupted) {
                process.destroyForcibly();
                throw new IOException(interrupted);
            }
        }
    }

    public static class PipedMapper implements Mapper<LongWritable, Text, Writable, Writable> {
        private JobConf conf;

        public void configure(JobConf conf) {
            this.conf = conf;
        }

        public void map(LongWritable at, Text line, OutputCollector<Writable, Writable> out, Reporter reporter)
                throws IOException {
            Piped piped = new Piped(conf, conf.get("piped.mapper"));
            piped.to.write((at.get() + "\t" + line + "\n").getBytes(StandardCharsets.UTF_8));
            piped.to.close();
            if (conf.getNumReduceTasks() == 0) {
                BufferedReader lines = new BufferedReader(new InputStreamReader(piped.from, StandardCharsets.UTF_8));
                for (String text = lines.readLine(); text != null; text = lines.readLine()) {
                    out.collect(new Text(text), new Text());
                }
            } else {
                for (BytesWritable key = piped.object(); key != null; key = piped.object()) {
                    BytesWritable value = piped.object();
                    if (value == null) {
                        throw new EOFException("a key without a value");
                    }
                    out.collect(key, value);
                }
            }
            piped.finish();
        }

        public void close() {}
    }

    public static class PipedReducer implements Reducer<BytesWritable, BytesWritable, Text, Text> {
        private Piped piped;
        private Thread reader;
        private OutputCollector<Text, Text> out;
        private final List<String> lines = new ArrayList<>();

        public void configure(JobConf conf) {
            try {
                piped = new Piped(conf, conf.get("piped.reducer"));
            } catch (IOException failed) {
                throw new RuntimeException(failed);
            }
            reader = new Thread(() -> new BufferedReader(new InputStreamReader(piped.from, StandardCharsets.UTF_8))
                    .lines()
                    .forEach(lines::add));
            reader.start();
        }

        public void reduce(
                BytesWritable key, Iterator<BytesWritable> values, OutputCollector<Text, Text> out, Reporter reporter)
                throws IOException {
            this.out = out;
            while (values.hasNext()) {
                BytesWritable value = values.next();
                piped.to.write(key.getBytes(), 0, key.getLength());
                piped.to.write(value.getBytes(), 0, value.getLength());
            }
        }

        public void close() throws IOException {
            piped.to.close();
            try {
                reader.join();
            } catch (InterruptedException interrupted) {
                throw new IOException(interrupted);
            }
            piped.finish();
            // As in streaming: what a reduce writes that had no input goes nowhere.
            if (out != null) {
                for (String line : lines) {
                    out.collect(new Text(line), new Text());
                }
            }
        }
    }

    public int run(String[] words) throws IOException {
        Map<String, String> flags = new HashMap<>();
        for (int at = 0; at + 1 < words.length; at += 2) {
            flags.put(words[at], words[at + 1]);
        }
        JobConf conf = new JobConf(getConf(), StreamingJob.class);
        conf.setNumReduceTasks(Integer.parseInt(flags.get("-numReduceTasks")));
        conf.setInputFormat(NLineInputFormat.class);
        conf.setMapperClass(PipedMapper.class);
        conf.set("piped.mapper", flags.get("-mapper"));
        if (flags.containsKey("-reducer")) {
            conf.setReducerClass(PipedReducer.class);
            conf.set("piped.reducer", flags.get("-reducer"));
            conf.setMapOutputKeyClass(BytesWritable.class);
            conf.setMapOutputValueClass(BytesWritable.class);
        }
        conf.setOutputKeyClass(Text.class);
        conf.setOutputValueClass(Text.class);
        FileInputFormat.setInputPaths(conf, new Path(flags.get("-input")));
        FileOutputFormat.setOutputPath(conf, new Path(flags.get("-output")));
        return JobClient.runJob(conf).isSuccessful() ? 0 : 1;
    }

    public static void main(String[] words) throws Exception {
        System.exit(ToolRunner.run(new StreamingJob(), words));
    }
}
