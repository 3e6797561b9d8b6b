//! Slots: values that change as a whole have four slots in a file, which are overwritten again and again.
//!
//! A slot is a page with a description, followed by the bytes of the value. A new value is written to a slot that
//! holds none of these: the newest value, which is needed if the process is killed now; the synced value, which a
//! power cut would leave; the value that is being synced. So writes reuse pages that the operating system already
//! caches, and at most three of the values between two syncs reach the disk. Reading takes the newest complete slot.
//! A slot that was synced as a whole is marked: if it is incomplete and newer than the others, the file is damaged.
//!
//! All slots of a file have the same size. Sizes are rounded up by at most an eighth, which limits the number of
//! files.

mod place;

use super::record::Record;
use super::{Entry, Found, failed};
use crate::fs::data_loss;
use parking_lot::{Mutex, RwLock};
use place::{Place, SlotFile};
use status::Result;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Smaller values have no slots; they are written to the log.
const SMALLEST: usize = 64 << 10;

/// The slots of all values.
pub(super) struct Slots {
    folder: PathBuf,
    files: Mutex<BTreeMap<u64, Arc<SlotFile>>>,
    places: RwLock<BTreeMap<Entry, Arc<Mutex<Place>>>>,
    /// Places of values that were deleted or moved to the log.
    retired: Mutex<Vec<Arc<Mutex<Place>>>>,
    /// Retired places that have one slot left.
    leaving: Mutex<Vec<Arc<Mutex<Place>>>>,
}

/// The number of syncs after which a retired place is empty, also after a power cut. First all slots but the newest
/// are wiped, then the newest: at any time the disk has a complete value, which may be old, or none.
pub(super) const SYNCS: usize = 3;

/// Places that are free when the log and the slots so far are synced.
pub(super) struct Retired(Vec<Arc<Mutex<Place>>>);

/// True if the value of a record belongs in slots.
pub(super) fn fits(record: &Record) -> bool {
    record.body().len() >= SMALLEST && place::fits(record)
}

impl Slots {
    /// Opens the files of a folder and adds their values to `found`.
    pub fn open(folder: &Path, found: &mut Found) -> Result<Slots> {
        let slots = Slots {
            folder: folder.to_path_buf(),
            files: Mutex::default(),
            places: RwLock::default(),
            retired: Mutex::default(),
            leaving: Mutex::default(),
        };
        for entry in fs::read_dir(folder).map_err(|error| failed(folder, &error))? {
            let name = entry.map_err(|error| failed(folder, &error))?.file_name();
            let Some(size) = name.to_str().and_then(|name| name.strip_suffix(".slots")) else { continue };
            let path = folder.join(&name);
            let size = size.parse().ok().filter(place::is_size);
            let size = size.ok_or_else(|| {
                data_loss(format!("Journal {}: the file name is not a valid size of slots", path.display()))
            })?;
            let file = Arc::new(SlotFile::open(path, size)?);
            for place in SlotFile::places(&file) {
                slots.find(place, found)?;
            }
            slots.files.lock().insert(size, file);
        }
        Ok(slots)
    }

    fn find(&self, mut place: Place, found: &mut Found) -> Result<()> {
        let entry = place.read(found)?;
        let place = Arc::new(Mutex::new(place));
        let old = match entry {
            Some(entry) => self.places.write().insert(entry, place),
            None => Some(place),
        };
        self.retired.lock().extend(old);
        Ok(())
    }

    /// Retires the slots of values that, according to the log, were deleted or are in the log. Called after the log was
    /// read.
    pub fn settle(&self, found: &Found) {
        self.places.write().retain(|entry, place| {
            let mut inner = place.lock();
            let kept = found.values.get(entry).filter(|kept| inner.sequence() == Some(kept.sequence));
            inner.followed = kept.is_some_and(|kept| kept.followed);
            if kept.is_none() {
                self.retired.lock().push(place.clone());
            }
            kept.is_some()
        });
    }

    /// Writes a value to its slots.
    pub fn write(&self, entry: &Entry, record: &Record) -> Result<()> {
        let size = place::slot_size(record.body().len());
        let known = self.places.read().get(entry).cloned();
        if let Some(known) = known {
            let mut known = known.lock();
            if known.size() == size {
                return known.write(record);
            }
        }
        let mut place = SlotFile::place(self.file(size)?);
        place.write(record)?;
        let old = self.places.write().insert(entry.clone(), Arc::new(Mutex::new(place)));
        self.retired.lock().extend(old);
        Ok(())
    }

    /// The number of the change that set the value in the slots, if there is one.
    pub fn sequence(&self, entry: &Entry) -> Option<u64> {
        self.places.read().get(entry)?.lock().sequence()
    }

    /// True if the slots hold the whole value.
    pub fn has(&self, entry: &Entry) -> bool {
        self.places.read().get(entry).is_some_and(|place| !place.lock().followed)
    }

    /// Records that the log has rows that are newer than the slots.
    pub fn follow(&self, entry: &Entry) {
        if let Some(place) = self.places.read().get(entry) {
            place.lock().followed = true;
        }
    }

    /// Retires the slots of a value that the log deletes or contains.
    pub fn lose(&self, entry: &Entry) {
        if self.places.read().contains_key(entry) {
            let place = self.places.write().remove(entry);
            self.retired.lock().extend(place);
        }
    }

    /// Retires the slots of all values of a container, which the log deletes.
    pub fn forget(&self, container: &str) {
        let mut places = self.places.write();
        let gone = places.extract_if(.., |entry, _| entry.container == container);
        self.retired.lock().extend(gone.map(|(_, place)| place));
    }

    /// Retires places of values that the log has deleted so far.
    pub fn retired(&self) -> Retired {
        Retired(std::mem::take(&mut *self.retired.lock()))
    }

    /// Makes the newest values survive a power cut. The log entries about retired places were synced before.
    pub fn sync(&self, retired: Retired) -> Result<()> {
        let mut leaving = self.leaving.lock(); // syncs exclude each other
        let places: Vec<_> = self.places.read().values().filter(|place| place.lock().begin()).cloned().collect();
        let concerned = places.iter().chain(&retired.0).chain(&*leaving);
        let sizes: BTreeSet<u64> = concerned.map(|place| place.lock().size()).collect();
        let files: Vec<_> = self.files.lock().values().cloned().collect();
        for file in files {
            file.sync(sizes.contains(&file.size()))?;
        }
        places.iter().try_for_each(|place| place.lock().end())?;
        leaving.drain(..).try_for_each(|place| place.lock().leave())?;
        retired.0.iter().try_for_each(|place| place.lock().wipe())?;
        leaving.extend(retired.0);
        Ok(())
    }

    fn file(&self, size: u64) -> Result<Arc<SlotFile>> {
        let mut files = self.files.lock();
        if let Some(file) = files.get(&size) {
            return Ok(file.clone());
        }
        let file = Arc::new(SlotFile::open(self.folder.join(format!("{size}.slots")), size)?);
        // The name of the file survives a power cut.
        File::open(&self.folder).and_then(|folder| folder.sync_all()).map_err(|error| failed(&self.folder, &error))?;
        files.insert(size, file.clone());
        Ok(file)
    }
}
