//! A file of a site, before it is written.

/// A file of the site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteFile {
    /// Path in the site's folder, with slashes.
    pub path: String,
    /// Content of the file.
    pub bytes: Vec<u8>,
}
