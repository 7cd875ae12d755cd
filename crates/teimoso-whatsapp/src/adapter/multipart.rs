//! Forms of several parts (RFC 7578), for providers that take files no other way; absent: reading them.

use bytes::Bytes;
use http::HeaderValue;

/// A form in the making. Names and file names must be free of quotes and control characters, which is what
/// [`Media`](crate::Media) sees to.
#[derive(Debug, Default)]
pub struct Multipart {
    parts: Vec<Part>,
}

#[derive(Debug)]
struct Part {
    head: String,
    content: Bytes,
}

impl Multipart {
    /// A form without parts.
    pub fn new() -> Self {
        Self::default()
    }

    /// With a text; `None` adds nothing.
    #[must_use]
    pub fn text(mut self, name: &'static str, text: Option<&str>) -> Self {
        if let Some(text) = text {
            let head = format!("Content-Disposition: form-data; name=\"{name}\"");
            self.parts.push(Part { head, content: Bytes::copy_from_slice(text.as_bytes()) });
        }
        self
    }

    /// With a file.
    #[must_use]
    pub fn file(mut self, name: &'static str, file_name: &str, media_type: &str, content: &Bytes) -> Self {
        let head = format!(
            "Content-Disposition: form-data; name=\"{name}\"; filename=\"{file_name}\"\r\nContent-Type: {media_type}"
        );
        self.parts.push(Part { head, content: content.clone() });
        self
    }

    /// The content type and the body. The boundary is one that no part contains, and the same for the same form: every
    /// attempt sends the same bytes.
    pub(crate) fn finish(self) -> (HeaderValue, Bytes) {
        let taken = |boundary: &str| {
            self.parts
                .iter()
                .any(|part| part.content.windows(boundary.len()).any(|window| window == boundary.as_bytes()))
        };
        let boundary = (0_u64..)
            .map(|number| format!("teimoso-{number:016x}"))
            .find(|boundary| !taken(boundary))
            .expect("a form holds fewer boundaries than there are numbers");
        let mut body = Vec::new();
        for Part { head, content } in &self.parts {
            body.extend_from_slice(format!("--{boundary}\r\n{head}\r\n\r\n").as_bytes());
            body.extend_from_slice(content);
            body.extend_from_slice(b"\r\n");
        }
        body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
        let content_type = HeaderValue::try_from(format!("multipart/form-data; boundary={boundary}"));
        (content_type.expect("a boundary is visible ASCII"), body.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_boundary_is_one_that_no_part_contains() {
        let content = Bytes::from_static(b"\r\n--teimoso-0000000000000000\r\n");
        let form = Multipart::new().text("id", None).text("number", Some("55")).file(
            "file",
            "a.png",
            "image/png",
            &content,
        );
        let (content_type, body) = form.finish();
        assert_eq!(content_type, "multipart/form-data; boundary=teimoso-0000000000000001");
        let expected = "--teimoso-0000000000000001\r\nContent-Disposition: form-data; name=\"number\"\r\n\r\n55\r\n\
                        --teimoso-0000000000000001\r\nContent-Disposition: form-data; name=\"file\"; \
                        filename=\"a.png\"\r\nContent-Type: image/png\r\n\r\n\r\n--teimoso-0000000000000000\r\n\r\n\
                        --teimoso-0000000000000001--\r\n";
        assert_eq!(body, expected);
    }
}
