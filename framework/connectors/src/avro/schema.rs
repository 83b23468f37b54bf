//! Avro schemas. Logical types are ignored: a date is its number of days.

use std::collections::BTreeMap;

use serde_json::Value;

/// Maximum nesting of schemas.
const DEPTH_MAX: usize = 64;

/// One type of a schema; other types are numbers in the list of all types.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    Null,
    Boolean,
    Int,
    Long,
    Float,
    Double,
    Bytes,
    String,
    Fixed(usize),
    Enum(Vec<String>),
    Record(Vec<(String, usize)>),
    Array(usize),
    Map(usize),
    Union(Vec<usize>),
}

/// All types of a schema.
#[derive(Debug)]
pub(super) struct Schema {
    kinds: Vec<Kind>,
    /// Whether values of each type may have zero size.
    empty: Vec<bool>,
    pub(super) root: usize,
}

impl Schema {
    /// Creates the schema of an empty file.
    pub(super) fn null() -> Schema {
        Schema {
            kinds: vec![Kind::Null],
            empty: vec![true],
            root: 0,
        }
    }

    /// Parses a schema; the error completes the sentence "FILE cannot be read: ...".
    pub(super) fn parse(text: &[u8]) -> Result<Schema, String> {
        let value: Value = serde_json::from_slice(text)
            .map_err(|error| format!("invalid JSON in its schema: {error}"))?;
        let mut parser = Parser::default();
        let root = parser.parse(&value, "", 0)?;
        Ok(Schema {
            empty: empty_kinds(&parser.kinds),
            kinds: parser.kinds,
            root,
        })
    }

    pub(super) fn kind(&self, number: usize) -> &Kind {
        &self.kinds[number]
    }

    /// Returns whether values of this type may have zero size: null, and records of such types.
    pub(super) fn may_be_empty(&self, number: usize) -> bool {
        self.empty[number]
    }
}

/// Returns which types may have values of zero size.
fn empty_kinds(kinds: &[Kind]) -> Vec<bool> {
    let mut empty: Vec<bool> = vec![true; kinds.len()];
    let mut has_changed = true;
    // A record may refer to later types.
    while std::mem::take(&mut has_changed) {
        for (number, kind) in kinds.iter().enumerate() {
            let is_empty = match kind {
                Kind::Null | Kind::Fixed(0) => true,
                Kind::Record(fields) => fields.iter().all(|(_, kind)| empty[*kind]),
                _ => false,
            };
            has_changed |= empty[number] != is_empty;
            empty[number] = is_empty;
        }
    }
    empty
}

#[derive(Default)]
struct Parser {
    kinds: Vec<Kind>,
    named: BTreeMap<String, usize>,
}

impl Parser {
    fn add(&mut self, kind: Kind) -> usize {
        self.kinds.push(kind);
        self.kinds.len() - 1
    }

    fn parse(&mut self, schema: &Value, namespace: &str, depth: usize) -> Result<usize, String> {
        if depth > DEPTH_MAX {
            return Err("its schema is nested too deeply".to_owned());
        }
        match schema {
            Value::String(name) => self.parse_name(name, namespace),
            Value::Array(branches) => {
                let branches = branches
                    .iter()
                    .map(|branch| self.parse(branch, namespace, depth + 1));
                let branches = branches.collect::<Result<_, _>>()?;
                Ok(self.add(Kind::Union(branches)))
            }
            Value::Object(_) => self.parse_object(schema, namespace, depth),
            other => Err(format!("{other} is not a type of a schema")),
        }
    }

    fn parse_name(&mut self, name: &str, namespace: &str) -> Result<usize, String> {
        let kind = match name {
            "null" => Kind::Null,
            "boolean" => Kind::Boolean,
            "int" => Kind::Int,
            "long" => Kind::Long,
            "float" => Kind::Float,
            "double" => Kind::Double,
            "bytes" => Kind::Bytes,
            "string" => Kind::String,
            _ => {
                let full = full_name(name, namespace);
                let known = self.named.get(&full).or_else(|| self.named.get(name));
                return known
                    .copied()
                    .ok_or_else(|| format!("type {name:?} of its schema is not defined"));
            }
        };
        Ok(self.add(kind))
    }

    fn parse_object(
        &mut self,
        schema: &Value,
        namespace: &str,
        depth: usize,
    ) -> Result<usize, String> {
        let kind = schema
            .get("type")
            .ok_or("its schema has an object without a type")?;
        let Some(name) = kind.as_str() else {
            return self.parse(kind, namespace, depth + 1);
        };
        match name {
            "array" | "map" => {
                let key = if name == "array" { "items" } else { "values" };
                let of = schema
                    .get(key)
                    .ok_or_else(|| format!("its schema has a type {name} without {key}"))?;
                let of = self.parse(of, namespace, depth + 1)?;
                Ok(self.add(if name == "array" {
                    Kind::Array(of)
                } else {
                    Kind::Map(of)
                }))
            }
            "enum" | "fixed" | "record" | "error" => {
                self.parse_named(schema, name, namespace, depth)
            }
            _ => self.parse_name(name, namespace),
        }
    }

    fn parse_named(
        &mut self,
        schema: &Value,
        kind: &str,
        namespace: &str,
        depth: usize,
    ) -> Result<usize, String> {
        let lacks = |what: &str| format!("its schema has a type {kind} without {what}");
        let name = schema
            .get("name")
            .and_then(Value::as_str)
            .ok_or_else(|| lacks("a name"))?;
        let namespace = schema
            .get("namespace")
            .and_then(Value::as_str)
            .unwrap_or(namespace);
        let full = full_name(name, namespace);
        let own_namespace = full
            .rsplit_once('.')
            .map_or("", |(space, _)| space)
            .to_owned();
        let number = self.add(Kind::Null);
        self.named.insert(full, number);
        self.kinds[number] = match kind {
            "fixed" => {
                let size = schema
                    .get("size")
                    .and_then(Value::as_u64)
                    .and_then(|size| usize::try_from(size).ok());
                Kind::Fixed(size.ok_or_else(|| lacks("a size"))?)
            }
            "enum" => {
                let symbols = schema
                    .get("symbols")
                    .and_then(Value::as_array)
                    .ok_or_else(|| lacks("symbols"))?;
                let symbols = symbols
                    .iter()
                    .map(|symbol| symbol.as_str().map(str::to_owned));
                Kind::Enum(
                    symbols
                        .collect::<Option<_>>()
                        .ok_or_else(|| lacks("symbols that are texts"))?,
                )
            }
            _ => {
                let fields = schema
                    .get("fields")
                    .and_then(Value::as_array)
                    .ok_or_else(|| lacks("fields"))?;
                let mut parsed = Vec::new();
                for field in fields {
                    let name = field
                        .get("name")
                        .and_then(Value::as_str)
                        .ok_or_else(|| lacks("a field's name"))?;
                    let of = field.get("type").ok_or_else(|| lacks("a field's type"))?;
                    parsed.push((name.to_owned(), self.parse(of, &own_namespace, depth + 1)?));
                }
                Kind::Record(parsed)
            }
        };
        Ok(number)
    }
}

fn full_name(name: &str, namespace: &str) -> String {
    if name.contains('.') || namespace.is_empty() {
        name.to_owned()
    } else {
        format!("{namespace}.{name}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schema_names_resolve_with_and_without_namespace() {
        let text = br#"{"type": "record", "name": "List", "namespace": "a.b", "fields": [
            {"name": "next", "type": ["null", "List"]}, {"name": "size", "type": {"type": "fixed", "name": "Id", "size": 4}},
            {"name": "other", "type": "a.b.Id"}, {"name": "day", "type": {"type": "int", "logicalType": "date"}}]}"#;
        let schema = Schema::parse(text).expect("it is a schema");
        let Kind::Record(fields) = schema.kind(schema.root) else {
            panic!("{schema:?}")
        };
        assert_eq!(schema.kind(fields[1].1), &Kind::Fixed(4));
        assert_eq!(schema.kind(fields[2].1), &Kind::Fixed(4));
        assert_eq!(schema.kind(fields[3].1), &Kind::Int);
        let Kind::Union(branches) = schema.kind(fields[0].1) else {
            panic!("{schema:?}")
        };
        assert_eq!(branches[1], schema.root);
    }

    #[test]
    fn invalid_schema_is_rejected() {
        for (text, message) in [
            (
                "",
                "invalid JSON in its schema: EOF while parsing a value at line 1 column 0",
            ),
            ("\"word\"", "type \"word\" of its schema is not defined"),
            (
                "{\"type\": \"array\"}",
                "its schema has a type array without items",
            ),
            (
                "{\"type\": \"record\", \"name\": \"a\"}",
                "its schema has a type record without fields",
            ),
            ("3", "3 is not a type of a schema"),
        ] {
            assert_eq!(
                Schema::parse(text.as_bytes()).expect_err("it is none"),
                message
            );
        }
        let deep = format!("{}\"int\"{}", "[".repeat(100), "]".repeat(100));
        assert_eq!(
            Schema::parse(deep.as_bytes()).expect_err("deep"),
            "its schema is nested too deeply"
        );
    }
}
