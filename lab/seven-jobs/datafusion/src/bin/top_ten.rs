use std::env;

use datafusion::dataframe::DataFrameWriteOptions;
use datafusion::error::Result;
use datafusion::prelude::*;

/// The words that are at least as frequent as the tenth.
#[tokio::main]
async fn main() -> Result<()> {
    let paths: Vec<String> = env::args().collect();
    let ctx = SessionContext::new();
    let lines = CsvReadOptions::new().has_header(false).delimiter(0).file_extension(".txt");
    ctx.register_csv("text", &paths[1], lines).await?;
    let top = ctx.sql(
        "SELECT word, count(*) FROM (SELECT unnest(string_to_array(column_1, ' ')) AS word FROM text)
         GROUP BY word QUALIFY rank() OVER (ORDER BY count(*) DESC) <= 10",
    );
    top.await?.write_csv(&paths[2], DataFrameWriteOptions::new(), None).await?;
    Ok(())
}
