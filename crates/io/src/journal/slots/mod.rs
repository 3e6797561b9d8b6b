//! Values that change as a whole, again and again: each has four slots in a file, and is written over and over there.
//!
//! A slot is a page that says what is in it, and the bytes of the value. A new value goes to a slot that holds neither the
//! newest one, which is all there is if the process is killed now, nor the one that a power cut would leave, nor the one
//! that is on its way to the disk. So the bytes always go to pages the operating system has already, and of many values
//! between two visits to the disk it writes three at most. Who reads takes the newest slot that is complete. A slot that was on the
//! disk as a whole has a mark: if it is not complete and newer than what is, there is damage.
//!
//! A file has slots of one size. Sizes are rounded up by an eighth at most, so that there are few files.

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

/// Values of fewer bytes are not worth a slot.
const SMALLEST: usize = 64 << 10;

/// The slots of all values that have some.
pub(super) struct Slots {
    folder: PathBuf,
    files: Mutex<BTreeMap<u64, Arc<SlotFile>>>,
    places: RwLock<BTreeMap<Entry, Arc<Mutex<Place>>>>,
    /// Places of values that are gone or elsewhere.
    retired: Mutex<Vec<Arc<Mutex<Place>>>>,
    /// Those of which one slot is left.
    leaving: Mutex<Vec<Arc<Mutex<Place>>>>,
}

/// A place that was retired before a sync is empty after so many, and stays so after a power cut. First all slots go but
/// the newest, then that one: whatever part of this is on the disk, there is a complete value that is old, or nothing.
pub(super) const SYNCS: usize = 3;

/// Places that nobody needs any more, once the log and the slots so far are on the disk.
pub(super) struct Retired(Vec<Arc<Mutex<Place>>>);

/// Whether the value of a record is kept in slots.
pub(super) fn fits(record: &Record) -> bool {
    record.body().len() >= SMALLEST && place::fits(record)
}

impl Slots {
    /// Opens the files of a folder, and puts what they hold to what was found.
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
            let size = size.ok_or_else(|| data_loss(format!("Journal {}: no size of a slot", path.display())))?;
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

    /// After the log was read too: values that are gone, or are in the log, need no slots.
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

    /// Writes a value down.
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

    /// Which change made the value in the slots, if it has some.
    pub fn sequence(&self, entry: &Entry) -> Option<u64> {
        self.places.read().get(entry)?.lock().sequence()
    }

    /// Whether the slots have all of a value.
    pub fn has(&self, entry: &Entry) -> bool {
        self.places.read().get(entry).is_some_and(|place| !place.lock().followed)
    }

    /// The log has rows of a value that are newer than its slots.
    pub fn follow(&self, entry: &Entry) {
        if let Some(place) = self.places.read().get(entry) {
            place.lock().followed = true;
        }
    }

    /// The log says that a value is gone, or has it.
    pub fn lose(&self, entry: &Entry) {
        if self.places.read().contains_key(entry) {
            let place = self.places.write().remove(entry);
            self.retired.lock().extend(place);
        }
    }

    /// The log says that the values of a container are gone.
    pub fn forget(&self, container: &str) {
        let mut places = self.places.write();
        let gone = places.extract_if(.., |entry, _| entry.container == container);
        self.retired.lock().extend(gone.map(|(_, place)| place));
    }

    /// Places of values that are gone, as the log so far says.
    pub fn retired(&self) -> Retired {
        Retired(std::mem::take(&mut *self.retired.lock()))
    }

    /// Lets the newest values survive a power cut. What the log said of retired places does so already.
    pub fn sync(&self, retired: Retired) -> Result<()> {
        let mut leaving = self.leaving.lock(); // nobody else does this meanwhile
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
        // Its name survives a power cut.
        File::open(&self.folder).and_then(|folder| folder.sync_all()).map_err(|error| failed(&self.folder, &error))?;
        files.insert(size, file.clone());
        Ok(file)
    }
}
