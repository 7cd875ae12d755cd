//! Where an answer goes: stdout, or a file that appears only when it is complete.
//! Deliberately absent: the answer.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::exit::CliError;
use crate::output::Output;

/// How many unfinished files of killed processes are passed over.
const LEFT_BEHIND_MAX: u32 = 100;

/// Where the answer goes. It is opened before the request is sent: an answer that has nowhere to go is found out while
/// nothing has happened yet.
pub(super) enum Place {
    /// To stdout.
    Stdout,
    /// Into what is no regular file (a device, a pipe), which cannot be replaced.
    Straight(File, PathBuf),
    /// Into a file beside its place, which takes it when it is complete.
    Beside(Unfinished),
}

/// A file that is removed unless it is finished.
pub(super) struct Unfinished {
    file: File,
    path: PathBuf,
    place: PathBuf,
}

impl Place {
    /// Opens it; none and `-` are stdout.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn open(file: Option<&Path>) -> Result<Place, CliError> {
        let Some(file) = file.filter(|file| *file != Path::new("-")) else { return Ok(Place::Stdout) };
        let opened = match fs::metadata(file) {
            Ok(found) if found.is_file() => Unfinished::replacing(file, &found).map(Place::Beside),
            Ok(found) if found.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
            Ok(_) => OpenOptions::new().write(true).open(file).map(|open| Place::Straight(open, file.into())),
            Err(_) => Unfinished::at(file.to_owned()).map(Place::Beside),
        };
        opened.map_err(|error| unwritable(file, &error))
    }

    /// Whether it is a file.
    pub(super) fn is_file(&self) -> bool {
        !matches!(self, Place::Stdout)
    }

    /// Writes all of it.
    ///
    /// # Errors
    /// It cannot be written; a file is then as it was.
    pub(super) fn write(self, parts: &[&[u8]], output: Output) -> Result<(), CliError> {
        match self {
            Place::Stdout => output.bytes(&parts.concat()),
            Place::Straight(file, path) => write_all(&file, parts).map_err(|error| unwritable(&path, &error)),
            Place::Beside(unfinished) => {
                let place = unfinished.place.clone();
                unfinished.finish(parts).map_err(|error| unwritable(&place, &error))
            }
        }
    }
}

fn write_all(mut file: &File, parts: &[&[u8]]) -> io::Result<()> {
    parts.iter().try_for_each(|part| file.write_all(part))
}

fn unwritable(path: &Path, error: &io::Error) -> CliError {
    CliError::failure(format!("cannot write {}: {error}", path.display()))
}

impl Unfinished {
    /// A file to stand where another one stands, with its permissions. A symbolic link goes on pointing there.
    fn replacing(place: &Path, found: &fs::Metadata) -> io::Result<Unfinished> {
        if found.permissions().readonly() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let unfinished = Unfinished::at(fs::canonicalize(place)?)?;
        unfinished.file.set_permissions(found.permissions())?;
        Ok(unfinished)
    }

    fn at(place: PathBuf) -> io::Result<Unfinished> {
        let Some(name) = place.file_name() else { return Err(io::ErrorKind::IsADirectory.into()) };
        let mut taken = io::Error::from(io::ErrorKind::AlreadyExists);
        // In a container, a process that was killed had the number that this one has.
        for number in 0..LEFT_BEHIND_MAX {
            let mut unfinished = OsString::from(".");
            unfinished.push(name);
            unfinished.push(format!(".{}-{number}.part", std::process::id()));
            let path = place.with_file_name(unfinished);
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => return Ok(Unfinished { file, path, place }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => taken = error,
                Err(error) => return Err(error),
            }
        }
        Err(taken)
    }

    fn finish(self, parts: &[&[u8]]) -> io::Result<()> {
        write_all(&self.file, parts)?;
        self.file.sync_data()?;
        fs::rename(&self.path, &self.place)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // After `finish` there is none under this name.
        let _gone = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::Language;

    const OUTPUT: Output = Output { language: Language::English };

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).expect("readable");
        entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("text")).collect()
    }

    #[test]
    fn a_file_appears_when_it_is_complete_and_not_before() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("answer");
        let place = Place::open(Some(&path)).expect("opened");
        assert!(place.is_file() && !path.exists());
        place.write(&[b"one ", b"two"], OUTPUT).expect("written");
        assert_eq!(fs::read(&path).expect("there"), b"one two");
        assert_eq!(names(directory.path()), ["answer"]);
    }

    #[test]
    fn what_stood_there_stays_until_then_and_lends_its_permissions() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let directory = tempfile::tempdir().expect("a directory");
        let (path, link) = (directory.path().join("answer"), directory.path().join("link"));
        fs::write(&path, "old").expect("written");
        fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).expect("set");
        symlink("answer", &link).expect("linked");
        drop(Place::open(Some(&link)).expect("opened"));
        assert_eq!(fs::read(&path).expect("there"), b"old");
        Place::open(Some(&link)).expect("opened").write(&[b"new"], OUTPUT).expect("written");
        assert_eq!(fs::read(&path).expect("there"), b"new");
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o640);
        assert!(fs::symlink_metadata(&link).expect("there").is_symlink());
        assert_eq!(names(directory.path()).len(), 2);
    }

    #[test]
    fn what_a_killed_process_left_behind_is_in_nobody_s_way() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("answer");
        let left = directory.path().join(format!(".answer.{}-0.part", std::process::id()));
        fs::write(&left, "half").expect("written");
        Place::open(Some(&path)).expect("opened").write(&[b"whole"], OUTPUT).expect("written");
        assert_eq!(
            (fs::read(&path).expect("there"), fs::read(&left).expect("there")),
            (b"whole".to_vec(), b"half".to_vec())
        );
    }

    #[test]
    fn a_place_that_cannot_be_written_is_found_out_at_once() {
        let directory = tempfile::tempdir().expect("a directory");
        for path in [directory.path().to_owned(), directory.path().join("no/such"), "/".into()] {
            let error = Place::open(Some(&path)).err().expect("refused");
            assert!(error.sentence.starts_with("cannot write "), "{error}");
        }
        assert!(matches!(Place::open(Some(Path::new("-"))), Ok(Place::Stdout)));
        let device = Place::open(Some(Path::new("/dev/null"))).expect("opened");
        assert!(matches!(device, Place::Straight(..)));
        device.write(&[b"x"], OUTPUT).expect("written");
    }
}
