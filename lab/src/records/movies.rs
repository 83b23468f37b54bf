//! Movies with their reviews: a line is `movie:rater_rating,rater_rating,...`.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Movie<'a> {
    /// The number of the movie, as text.
    pub id: &'a str,
    reviews: &'a str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Review {
    pub rater: u32,
    /// From 1 to 5.
    pub rating: u8,
}

impl<'a> Movie<'a> {
    /// The movie of a line. Reviews are read when they are asked for.
    ///
    /// # Errors
    ///
    /// When the line has no colon.
    pub fn parse(line: &'a str) -> Result<Movie<'a>, String> {
        let (id, reviews) = line.split_once(':').ok_or_else(|| {
            format!(
                "expected MOVIE:RATER_RATING,..., but found {:?}",
                beginning(line)
            )
        })?;
        Ok(Movie { id, reviews })
    }

    /// The reviews in the order of the line.
    pub fn reviews(&self) -> impl Iterator<Item = Result<Review, String>> + use<'a> {
        let id = self.id;
        let none = usize::from(self.reviews.is_empty());
        self.reviews.split(',').skip(none).map(move |review| {
            let wrong =
                || format!("movie {id}: expected RATER_RATING with a rating of 1 to 5, but found {review:?}");
            let (rater, rating) = review.split_once('_').ok_or_else(wrong)?;
            let rater = rater.parse().map_err(|_| wrong())?;
            let rating = rating.parse().ok().filter(|rating| (1..=5).contains(rating)).ok_or_else(wrong)?;
            Ok(Review { rater, rating })
        })
    }
}

/// As much of a line as an error may quote.
fn beginning(line: &str) -> &str {
    line.get(..line.floor_char_boundary(80)).unwrap_or(line)
}
