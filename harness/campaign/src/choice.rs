//! Selects the model: by name or file, and by dialect and device.

use std::path::{Path, PathBuf};

use model::Model;

use crate::Failure;
use crate::similar::did_you_mean;
use crate::within::path_within;

/// A loaded model with the hash of its text.
#[derive(Debug)]
pub struct Chosen {
    /// The parsed model.
    pub model: Model,
    /// The name or path from the command line.
    pub argument: String,
    /// BLAKE3 hash of all its text ([`hash_of`]), in hexadecimal digits.
    pub hash: String,
}

/// Loads a shipped model by name. A record may not choose a path, so that other names give `None`.
pub fn load_shipped(name: &str) -> Option<Chosen> {
    Model::shipped(name).and_then(|_| load(name).ok())
}

/// The largest cat file that is read.
const MAX_MODEL_BYTES: u64 = 1 << 20;

/// Loads a shipped model by name, or a cat file.
///
/// # Errors
/// If the model does not exist, or its text is invalid.
pub fn load(argument: &str) -> Result<Chosen, Failure> {
    if let Some(shipped) = Model::shipped(argument) {
        let model = shipped.map_err(Failure::input)?;
        return Ok(Chosen { hash: hash_of(&model), model, argument: argument.to_owned() });
    }
    let path = Path::new(argument);
    if path.extension().is_none_or(|extension| extension != "cat") {
        let known: Vec<&str> = Model::names().iter().map(|(name, _)| *name).collect();
        return Err(Failure::input_message(format!(
            "unknown model `{argument}`{}: give a cat file or one of {}",
            did_you_mean(argument, known.iter().copied()),
            known.join(", ")
        )));
    }
    let text = read_text(path)?;
    let folder: PathBuf = path.parent().map(Path::to_owned).unwrap_or_default();
    let include = |name: &str| path_within(&folder, name).ok().and_then(|path| read_text(&path).ok());
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let model = Model::from_text(&name, &text, &include)
        .map_err(|errors| Failure::input(errors.in_file(&path.display().to_string())))?;
    Ok(Chosen { hash: hash_of(&model), model, argument: argument.to_owned() })
}

fn read_text(path: &Path) -> Result<String, Failure> {
    use std::io::Read;
    let wrong = |what: String| Failure::input_message(format!("{}: {what}", path.display()));
    let metadata = std::fs::metadata(path).map_err(|error| wrong(error.to_string()))?;
    if !metadata.is_file() {
        return Err(wrong("not a regular file".to_owned()));
    }
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(MAX_MODEL_BYTES + 1).read_to_end(&mut bytes))
        .map_err(|error| wrong(error.to_string()))?;
    if bytes.len() as u64 > MAX_MODEL_BYTES {
        return Err(wrong(format!("larger than {} KiB", MAX_MODEL_BYTES / 1024)));
    }
    String::from_utf8(bytes).map_err(|_| wrong("not UTF-8".to_owned()))
}

/// Returns the BLAKE3 hash in hexadecimal digits.
pub fn hash(text: &str) -> String {
    runner::text_hash(text)
}

/// Returns the BLAKE3 hash of a model and its included files, because both determine verdicts.
pub fn hash_of(model: &Model) -> String {
    results::sources_hash(model.sources())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_includes_included_files() {
        let with = |body: &str| {
            let include = |file: &str| (file == "body.cat").then(|| body.to_owned());
            hash_of(&Model::from_text("own", "VULKAN \"own\"\ninclude \"body.cat\"\n", &include).unwrap())
        };
        let body = "acyclic po | rf as order";
        assert_eq!(with(body), with(body));
        assert_ne!(with(body), with("acyclic po | rf | fr as order"));
        let shipped = load_shipped("vulkan").unwrap();
        assert_ne!(shipped.hash, hash(Model::text("vulkan").unwrap()));
    }
}
