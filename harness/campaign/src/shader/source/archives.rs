//! Modules of archives as shaders: `FILE.foz/HASH` names one by the hash of the module or of a pipeline.

use std::collections::BTreeMap;
use std::io::BufReader;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use super::{SourceError, SourceModule, declared_constants};
use crate::files;
use crate::shader::archive::{Archive, ArchiveError};

/// The extension of archives.
const EXTENSION: &str = ".foz";

/// The archives that a command has scanned, by path. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct ArchiveCache(Arc<Mutex<BTreeMap<String, Arc<Archive>>>>);

/// Returns the archive that an argument names, and the member if it names one.
pub(super) fn archive_of(argument: &str) -> Option<(&str, Option<&str>)> {
    if argument.ends_with(EXTENSION) {
        return Some((argument, None));
    }
    let (start, member) = argument.rsplit_once('/')?;
    // A folder may have such a name.
    (start.ends_with(EXTENSION) && !Path::new(start).is_dir()).then_some((start, Some(member)))
}

impl ArchiveCache {
    fn scan(&self, file: &str) -> Result<Arc<Archive>, SourceError> {
        let mut scanned = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(archive) = scanned.get(file) {
            return Ok(archive.clone());
        }
        let opened = files::open_file(file.as_ref());
        let opened = opened.map_err(|error| SourceError::File { file: file.to_owned(), error })?;
        let archive = Arc::new(Archive::scan(&mut BufReader::new(opened)));
        scanned.insert(file.to_owned(), archive.clone());
        Ok(archive)
    }

    /// Returns the names of the members that `member` selects, or of all.
    pub(super) fn member_names(&self, file: &str, member: Option<&str>) -> Vec<String> {
        let argument = || member.map_or(file.to_owned(), |member| format!("{file}/{member}"));
        let Ok(archive) = self.scan(file) else { return vec![argument()] };
        let selected = member.map_or_else(|| archive.members.iter().collect(), |name| archive.select(name));
        let mut names: Vec<String> =
            selected.iter().map(|member| format!("{file}/{}", member.name)).collect();
        // Pipelines behind the damage may give a module other constants.
        let is_partial = archive.damage.is_some() && selected.iter().any(|member| member.pipeline.is_none());
        match names.is_empty() {
            true => names.push(argument()),
            false if is_partial || member.is_none() && archive.damage.is_some() => {
                names.push(file.to_owned())
            }
            false => {}
        }
        names
    }

    /// Reads a member of an archive, or its only one.
    pub(super) fn load(&self, file: &str, member: Option<&str>) -> Result<SourceModule, SourceError> {
        let archive = self.scan(file)?;
        let to_error = |error: ArchiveError| SourceError::Archive { file: file.to_owned(), error };
        let exact = member.and_then(|name| archive.members.iter().find(|member| member.name == name));
        let selected = match (exact, member) {
            (Some(exact), _) => vec![exact],
            (None, Some(name)) => archive.select(name),
            (None, None) => archive.members.iter().collect(),
        };
        let damage = archive.damage.clone().filter(|_| member.is_none() || selected.is_empty());
        damage.map_or(Ok(()), |error| Err(to_error(error)))?;
        let first = selected.first().copied().or(archive.members.first());
        let first_name = first.map(|member| format!("{file}/{}", member.name));
        match (&selected[..], first_name, member) {
            ([only], ..) => {
                if archive.damage.is_some() && only.pipeline.is_none() {
                    tracing::warn!(
                        "{file}/{}: the archive is damaged, so pipelines of this module and their constants may be missing",
                        only.name
                    );
                }
                let opened = files::open_file(file.as_ref());
                let opened = opened.map_err(|error| SourceError::File { file: file.to_owned(), error })?;
                let bytes = archive.read_module(&mut BufReader::new(opened), only).map_err(to_error)?;
                let mut given = only.settings.to_options();
                // Pipelines may give constants that the module does not have, and not give others.
                let constants = declared_constants(&bytes).into_iter();
                let value = |(id, declared)| (id, given.specialization.get(&id).copied().unwrap_or(declared));
                given.specialization = constants.map(value).collect();
                let given = only.pipeline.map(|_| Box::new(given));
                Ok(SourceModule { given, ..SourceModule::from_spirv(bytes) })
            }
            ([], Some(first), Some(name)) => {
                Err(SourceError::UnknownMember { file: file.to_owned(), name: name.to_owned(), first })
            }
            (several, Some(first), _) => {
                let count = several.len();
                Err(SourceError::SeveralModules { file: file.to_owned(), count, first })
            }
            (_, None, _) => Err(SourceError::NoModules { file: file.to_owned(), entries: archive.entries }),
        }
    }
}
