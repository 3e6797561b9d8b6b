//! An object store as a file system: folders are common prefixes of names, and a file appears when it is complete.

mod address;
pub(crate) mod connect;
mod connector;
mod error;
mod place;
mod reader;
mod writer;

pub(crate) use connect::Connect;
pub(crate) use place::Sizes;

use crate::StoreOptions;
use crate::threads::Threads;
pub(crate) use address::Address;
use futures_util::{StreamExt, TryStreamExt};
use io::fs::{FileStat, FileSystem, RandomAccessFile, WritableFile};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};
use parking_lot::Mutex;
use place::{Place, Shared};
use reader::ObjectReader;
use status::{Code, Result, failed_precondition, not_found};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::SystemTime;
use writer::ObjectWriter;

/// All buckets of one scheme.
pub(crate) struct ObjectFileSystem {
    scheme: &'static str,
    connect: Connect,
    buckets: Mutex<BTreeMap<String, Arc<dyn ObjectStore>>>,
    shared: Arc<Shared>,
}

/// The largest object that stores copy in one request.
const LARGEST_COPY: u64 = 5 << 30;

impl ObjectFileSystem {
    /// `connect` creates the client of a bucket.
    pub fn new(scheme: &'static str, connect: Connect, threads: Arc<Threads>, options: &StoreOptions) -> Self {
        ObjectFileSystem::sized(scheme, connect, threads, options, Sizes::default())
    }

    pub(crate) fn sized(
        scheme: &'static str,
        connect: Connect,
        threads: Arc<Threads>,
        options: &StoreOptions,
        sizes: Sizes,
    ) -> Self {
        let shared = Arc::new(Shared { threads, secrets: options.secrets(), sizes });
        ObjectFileSystem { scheme, connect, buckets: Mutex::default(), shared }
    }

    /// The object for a URL; the key is empty for the bucket itself.
    fn place(&self, name: &str) -> Result<Place> {
        let Address { bucket, key } = Address::parse(self.scheme, name)?;
        let mut buckets = self.buckets.lock();
        let store = match buckets.get(&bucket) {
            Some(store) => store.clone(),
            None => {
                let store = (self.connect)(&bucket).map_err(|error| self.shared.failed(name, &error))?;
                buckets.insert(bucket, store.clone());
                store
            }
        };
        drop(buckets);
        Ok(Place { store, key, name: name.to_string(), shared: self.shared.clone() })
    }

    /// The object for a URL that must name a key.
    fn file(&self, name: &str) -> Result<Place> {
        let place = self.place(name)?;
        match place.key.as_ref().is_empty() {
            true => Err(address::no_object(self.scheme, name)),
            false => Ok(place),
        }
    }
}

impl FileSystem for ObjectFileSystem {
    fn open(&self, name: &str) -> Result<Arc<dyn RandomAccessFile>> {
        let place = self.file(name)?;
        let size = head(&place)?.size;
        Ok(Arc::new(ObjectReader::new(place, size)))
    }

    fn create(&self, name: &str) -> Result<Box<dyn WritableFile>> {
        Ok(Box::new(ObjectWriter::create(self.file(name)?)))
    }

    fn append(&self, name: &str) -> Result<Box<dyn WritableFile>> {
        let place = self.file(name)?;
        match head(&place) {
            Ok(meta) => Ok(Box::new(ObjectWriter::after(place, meta.size)?)),
            Err(error) if error.code == Code::NotFound => Ok(Box::new(ObjectWriter::create(place))),
            Err(error) => Err(error),
        }
    }

    fn stat(&self, name: &str) -> Result<FileStat> {
        let place = self.place(name)?;
        if !place.key.as_ref().is_empty() {
            match head(&place) {
                Ok(meta) => {
                    return Ok(FileStat { size: meta.size, modified: meta.last_modified.into(), is_dir: false });
                }
                Err(error) if error.code == Code::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        // The root of a bucket exists even if the bucket is empty.
        match is_folder(&place)? || place.key.as_ref().is_empty() {
            true => Ok(FileStat { size: 0, modified: SystemTime::UNIX_EPOCH, is_dir: true }),
            false => Err(missing(name)),
        }
    }

    fn list(&self, folder: &str) -> Result<Vec<String>> {
        let place = self.place(folder)?;
        let key = prefix(&place.key);
        let found = place.wait(|store, _| async move { store.list_with_delimiter(key.as_ref()).await })?;
        let objects = found.objects.iter().map(|object| &object.location);
        let below = found.common_prefixes.iter().chain(objects).filter(|path| **path != place.key);
        let names: BTreeSet<String> = below.filter_map(|path| path.filename().map(str::to_string)).collect();
        if names.is_empty() && !place.key.as_ref().is_empty() {
            return match head(&place) {
                Ok(_) => Err(failed_precondition!("{folder}; Not a directory")),
                Err(_) => Err(missing(folder)),
            };
        }
        Ok(names.into_iter().collect())
    }

    fn delete(&self, name: &str) -> Result<()> {
        let place = self.file(name)?;
        // Stores do not report whether there was anything to delete.
        head(&place)?;
        place.wait(|store, key| async move { store.delete(&key).await })
    }

    /// Does nothing: a folder exists as soon as there is a file in it.
    fn create_dir(&self, name: &str) -> Result<()> {
        self.place(name).map(drop)
    }

    fn create_dirs(&self, name: &str) -> Result<()> {
        self.create_dir(name)
    }

    fn delete_dir(&self, name: &str) -> Result<()> {
        let place = self.place(name)?;
        match is_folder(&place)? {
            true => Err(failed_precondition!("{name}; Directory not empty")),
            false => Ok(()),
        }
    }

    fn delete_recursively(&self, name: &str) -> Result<()> {
        let place = self.place(name)?;
        let mut keys: Vec<Path> = below(&place)?.into_iter().map(|object| object.location).collect();
        if !place.key.as_ref().is_empty() && !keys.contains(&place.key) && head_if_there(&place)?.is_some() {
            keys.push(place.key.clone());
        }
        match keys.is_empty() {
            true => Err(not_found!("{name} not found")),
            false => delete_all(&place, keys),
        }
    }

    /// Copies, then deletes; the files of a folder one after the other.
    fn rename(&self, from: &str, to: &str) -> Result<()> {
        let (source, target) = (self.place(from)?, self.place(to)?);
        if source.key == target.key && Arc::ptr_eq(&source.store, &target.store) {
            return self.stat(from).map(drop);
        }
        if let Some(meta) = head_if_there(&source)? {
            self.file(to)?;
            copy(&source, &target, meta.size)?;
            return source.wait(|store, key| async move { store.delete(&key).await });
        }
        let objects = below(&source)?;
        if objects.is_empty() {
            return Err(missing(from));
        }
        for object in &objects {
            let rest = &object.location.as_ref()[source.key.as_ref().len()..];
            let key = Path::parse(format!("{}{rest}", target.key)).map_err(|error| target.failed(&error.into()))?;
            let (source, target) = (source.at(object.location.clone()), target.at(key));
            copy(&source, &target, object.size)?;
        }
        delete_all(&source, objects.into_iter().map(|object| object.location).collect())
    }

    fn renames_atomically(&self) -> bool {
        false
    }

    fn is_far(&self) -> bool {
        true
    }
}

fn missing(name: &str) -> status::Error {
    not_found!("{name}; No such file or directory")
}

fn head(place: &Place) -> Result<ObjectMeta> {
    place.wait(|store, key| async move { store.head(&key).await })
}

fn head_if_there(place: &Place) -> Result<Option<ObjectMeta>> {
    if place.key.as_ref().is_empty() {
        return Ok(None);
    }
    match head(place) {
        Ok(meta) => Ok(Some(meta)),
        Err(error) if error.code == Code::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The common prefix of the objects in a folder; `None` for the whole bucket.
fn prefix(key: &Path) -> Option<Path> {
    (!key.as_ref().is_empty()).then(|| key.clone())
}

/// True if there is at least one object in the folder.
fn is_folder(place: &Place) -> Result<bool> {
    let key = prefix(&place.key);
    let first = place.wait(|store, own| async move {
        let mut objects = store.list(key.as_ref());
        loop {
            match objects.next().await.transpose()? {
                // Some tools create an empty object to mark an empty folder.
                Some(object) if object.location == own && object.size == 0 => {}
                found => return Ok(found),
            }
        }
    })?;
    Ok(first.is_some())
}

/// All objects in a folder and its subfolders.
fn below(place: &Place) -> Result<Vec<ObjectMeta>> {
    let key = prefix(&place.key);
    place.wait(|store, _| async move { store.list(key.as_ref()).try_collect().await })
}

fn delete_all(place: &Place, keys: Vec<Path>) -> Result<()> {
    place.wait(|store, _| async move {
        let keys = futures_util::stream::iter(keys.into_iter().map(Ok)).boxed();
        store.delete_stream(keys).try_for_each(|_| async { Ok(()) }).await
    })
}

/// Copies an object within the store if it supports that, else through this process.
fn copy(source: &Place, target: &Place, size: u64) -> Result<()> {
    if Arc::ptr_eq(&source.store, &target.store) && size <= LARGEST_COPY {
        let to = target.key.clone();
        return source.wait(|store, key| async move { store.copy(&key, &to).await });
    }
    let reader = ObjectReader::new(source.clone(), size);
    let mut writer = Box::new(ObjectWriter::create(target.clone()));
    let mut piece = vec![0; source.shared.sizes.part];
    let mut offset = 0;
    while offset < size {
        let count = reader.read_at(offset, &mut piece)?;
        if count == 0 {
            break;
        }
        writer.append(&piece[..count])?;
        offset += count as u64;
    }
    writer.close()
}
