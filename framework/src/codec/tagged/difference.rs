//! Where two encodings of one type differ, for errors.

use super::error::TaggedError;
use super::read::Reader;
use super::tags;

/// The longest text that an error quotes, in bytes.
const QUOTED_MAX: usize = 60;

/// The first place where two encodings differ.
pub(super) struct Difference {
    /// Names of fields and variants, outermost first; empty if the whole values differ.
    pub(super) path: String,
    pub(super) written: String,
    pub(super) read: String,
}

/// Returns the first difference of two encodings; `None` if they differ at most in the order of maps.
pub(super) fn difference(written: &[u8], read: &[u8]) -> Result<Option<Difference>, TaggedError> {
    let mut walk = Walk {
        written: Reader::new(written),
        read: Reader::new(read),
        path: Vec::new(),
    };
    walk.value()
}

struct Walk<'a> {
    written: Reader<'a>,
    read: Reader<'a>,
    path: Vec<String>,
}

type Found = Result<Option<Difference>, TaggedError>;

impl Walk<'_> {
    fn value(&mut self) -> Found {
        let written = self.written.clone();
        let read = self.read.clone();
        let tag = self.written.take_tag()?;
        if tag != self.read.take_tag()? {
            return self.found(&written, &read);
        }
        match tag {
            tags::SOME => self.value(),
            tags::UNIT_VARIANT => {
                if self.written.take_name()? == self.read.take_name()? {
                    return Ok(None);
                }
                self.found(&written, &read)
            }
            tags::VARIANT => {
                let name = self.written.take_name()?;
                if name != self.read.take_name()? {
                    return self.found(&written, &read);
                }
                self.below(name.unwrap_or_default().to_owned())
            }
            tags::STRUCT => self.fields(),
            tags::SEQ | tags::MAP | tags::TUPLE => {
                if tag != tags::TUPLE {
                    self.written.take_varint()?;
                    self.read.take_varint()?;
                }
                self.items(tag == tags::MAP)
            }
            _ => {
                self.written = written.clone();
                self.read = read.clone();
                if self.written.take_scalar()? == self.read.take_scalar()? {
                    return Ok(None);
                }
                self.found(&written, &read)
            }
        }
    }

    fn fields(&mut self) -> Found {
        loop {
            match (self.written.take_name()?, self.read.take_name()?) {
                (None, None) => return Ok(None),
                (Some(written), Some(read)) if written == read => {
                    let found = self.below(written.to_owned())?;
                    if found.is_some() {
                        return Ok(found);
                    }
                }
                (written, read) => return Ok(Some(self.names(written, read))),
            }
        }
    }

    fn names(&self, written: Option<&str>, read: Option<&str>) -> Difference {
        let text = |name: Option<&str>| match name {
            Some(name) => format!("the field `{name}`"),
            None => "no further field".to_owned(),
        };
        Difference {
            path: self.path.join("."),
            written: text(written),
            read: text(read),
        }
    }

    fn items(&mut self, are_entries: bool) -> Found {
        let mut number = 0;
        while !self.written.is_at_end() && !self.read.is_at_end() {
            let place = if are_entries { number / 2 } else { number };
            let found = self.below(place.to_string())?;
            if found.is_some() {
                return Ok(found);
            }
            number += 1;
        }
        if self.written.is_at_end() && self.read.is_at_end() {
            self.written.take_tag()?;
            self.read.take_tag()?;
            return Ok(None);
        }
        let is_shorter = self.written.is_at_end();
        let more = "more items".to_owned();
        let least = format!("{number} items");
        let path = self.path.join(".");
        Ok(Some(match is_shorter {
            true => Difference {
                path,
                written: least,
                read: more,
            },
            false => Difference {
                path,
                written: more,
                read: least,
            },
        }))
    }

    fn below(&mut self, name: String) -> Found {
        self.path.push(name);
        let found = self.value()?;
        self.path.pop();
        Ok(found)
    }

    fn found(&self, written: &Reader<'_>, read: &Reader<'_>) -> Found {
        let written = describe(written)?;
        let read = describe(read)?;
        Ok(Some(Difference {
            path: self.path.join("."),
            written,
            read,
        }))
    }
}

/// Returns the value at the front as an error shows it.
fn describe(at: &Reader<'_>) -> Result<String, TaggedError> {
    let mut reader = at.clone();
    let text = match reader.take_tag()? {
        tags::NONE => "None".to_owned(),
        tags::SOME => format!("Some({})", describe(&reader)?),
        tags::UNIT => "()".to_owned(),
        tags::FALSE => "false".to_owned(),
        tags::TRUE => "true".to_owned(),
        tags::SEQ => "a list".to_owned(),
        tags::TUPLE => "a tuple".to_owned(),
        tags::MAP => "a map".to_owned(),
        tags::STRUCT => "a struct".to_owned(),
        tags::STR => {
            let text = reader.take_str()?;
            format!("{:?}", &text[..text.floor_char_boundary(QUOTED_MAX)])
        }
        tags::UNIT_VARIANT | tags::VARIANT => {
            format!("the variant {}", reader.take_name()?.unwrap_or_default())
        }
        tags::BYTES => format!("{} bytes", reader.take_varint()?),
        tag => reader.unexpected(tag)?.to_string(),
    };
    Ok(text)
}
