use std::{env, fs};

use datafusion::dataframe::DataFrameWriteOptions;
use datafusion::error::Result;
use datafusion::prelude::*;

/// The places of each word, as PATH:LINE.
#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().collect();
    let mut paths = Vec::new();
    let mut numbers = Vec::new();
    let mut lines = Vec::new();
    for file in fs::read_dir(&arguments[1])? {
        let path = file?.path();
        for (number, line) in (1_u64..).zip(fs::read_to_string(&path)?.lines()) {
            paths.push(path.display().to_string());
            numbers.push(number);
            lines.push(line.to_owned());
        }
    }
    let ctx = SessionContext::new();
    let text = dataframe!("path" => paths, "number" => numbers, "line" => lines)?;
    ctx.register_table("text", text.into_view())?;
    let index = ctx.sql(
        "SELECT word, string_agg(concat(path, ':', number), ' ' ORDER BY path, number)
         FROM (SELECT path, number, unnest(string_to_array(line, ' ')) AS word FROM text)
         WHERE word <> '' GROUP BY word",
    );
    index.await?.write_csv(&arguments[2], DataFrameWriteOptions::new(), None).await?;
    Ok(())
}
