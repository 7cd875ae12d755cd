//! Media types by the endings of file names. Deliberately absent: a look into the file, and a complete list: who has
//! something rarer names its type.

/// Endings in lower case, and the registered type of each.
const TYPES: [(&str, &str); 31] = [
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("png", "image/png"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("mp4", "video/mp4"),
    ("3gp", "video/3gpp"),
    ("mov", "video/quicktime"),
    ("webm", "video/webm"),
    ("mp3", "audio/mpeg"),
    ("ogg", "audio/ogg"),
    ("oga", "audio/ogg"),
    ("opus", "audio/ogg"),
    ("m4a", "audio/mp4"),
    ("aac", "audio/aac"),
    ("amr", "audio/amr"),
    ("wav", "audio/wav"),
    ("pdf", "application/pdf"),
    ("txt", "text/plain"),
    ("csv", "text/csv"),
    ("vcf", "text/vcard"),
    ("json", "application/json"),
    ("xml", "application/xml"),
    ("zip", "application/zip"),
    ("doc", "application/msword"),
    ("docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    ("xls", "application/vnd.ms-excel"),
    ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    ("ppt", "application/vnd.ms-powerpoint"),
    ("pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
    ("odt", "application/vnd.oasis.opendocument.text"),
];

/// The type of a file of this name.
pub(super) fn of(name: &str) -> Option<&'static str> {
    let (_, ending) = name.rsplit_once('.')?;
    let ending = ending.to_ascii_lowercase();
    TYPES.iter().find(|(known, _)| *known == ending).map(|(_, media_type)| *media_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_goes_by_the_last_ending_in_any_case() {
        let cases = [
            ("foto.PNG", Some("image/png")),
            ("a.tar.pdf", Some("application/pdf")),
            ("voz.opus", Some("audio/ogg")),
            ("nota", None),
            ("nota.", None),
            ("nota.xyz", None),
        ];
        for (name, media_type) in cases {
            assert_eq!(of(name), media_type, "{name}");
        }
    }
}
