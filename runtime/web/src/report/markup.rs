//! HTML output with escaping.

/// A page being written.
#[derive(Debug, Default)]
pub struct Markup(String);

impl Markup {
    /// Appends trusted markup.
    pub fn raw(&mut self, markup: &str) {
        self.0.push_str(markup);
    }

    /// Appends escaped text. Control and direction characters are replaced by a visible sign.
    pub fn text(&mut self, text: &str) {
        for character in text.chars() {
            match character {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                    self.0.push('\u{fffd}')
                }
                character if character.is_control() && character != '\n' => self.0.push('\u{fffd}'),
                character => self.0.push(character),
            }
        }
    }

    /// Appends an element that contains only text, with a class unless that is empty.
    pub fn element(&mut self, name: &str, class: &str, text: &str) {
        self.raw("<");
        self.raw(name);
        if !class.is_empty() {
            self.raw(" class=\"");
            self.text(class);
            self.raw("\"");
        }
        self.raw(">");
        self.text(text);
        self.raw("</");
        self.raw(name);
        self.raw(">");
    }

    pub fn done(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped() {
        let mut page = Markup::default();
        page.element("td", "a\"b", "<b>&\"'\u{1b}[2J\u{202e}\r\n");
        assert_eq!(
            page.done(),
            "<td class=\"a&quot;b\">&lt;b&gt;&amp;&quot;&#39;\u{fffd}[2J\u{fffd}\u{fffd}\n</td>"
        );
    }
}
