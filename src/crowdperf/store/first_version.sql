CREATE TABLE source (
    id INTEGER PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL, digest TEXT NOT NULL, imported_utc TEXT NOT NULL,
    UNIQUE (kind, name, digest)
) STRICT;
CREATE TABLE signer (
    key_id TEXT PRIMARY KEY, public_key BLOB NOT NULL, alias TEXT NOT NULL, first_seen TEXT NOT NULL,
    trust TEXT NOT NULL DEFAULT 'none' CHECK (trust IN ('none', 'known', 'blocked'))
) STRICT, WITHOUT ROWID;
CREATE TABLE system (
    key TEXT PRIMARY KEY, accelerator TEXT NOT NULL, accelerator_count INTEGER NOT NULL, nodes INTEGER NOT NULL,
    cpu TEXT NOT NULL, sockets INTEGER NOT NULL, cores INTEGER NOT NULL, memory_gib INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE configuration (
    key TEXT PRIMARY KEY, suite TEXT NOT NULL, benchmark TEXT NOT NULL, scenario TEXT NOT NULL,
    precision TEXT NOT NULL, tier TEXT NOT NULL, stack TEXT NOT NULL, device TEXT NOT NULL, data_kind TEXT NOT NULL,
    run_class TEXT NOT NULL, model_digest TEXT NOT NULL, settings TEXT NOT NULL,
    system_key TEXT NOT NULL REFERENCES system
) STRICT, WITHOUT ROWID;
CREATE INDEX configuration_system ON configuration (system_key);
CREATE TABLE result (
    seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, configuration_key TEXT REFERENCES configuration,
    source_id INTEGER NOT NULL REFERENCES source, signer TEXT REFERENCES signer, run_id TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('published', 'crowd', 'own')), round TEXT NOT NULL, division TEXT NOT NULL,
    category TEXT NOT NULL, submitter TEXT NOT NULL, system_name TEXT NOT NULL, labels TEXT NOT NULL,
    made_utc TEXT NOT NULL, added_utc TEXT NOT NULL, stack_version TEXT NOT NULL, metric TEXT NOT NULL, value REAL,
    unit TEXT NOT NULL, higher_is_better INTEGER NOT NULL, valid INTEGER, verification TEXT NOT NULL,
    state TEXT NOT NULL DEFAULT 'shown' CHECK (state IN ('shown', 'hidden', 'withdrawn')), digest TEXT NOT NULL,
    command TEXT NOT NULL, notes TEXT NOT NULL, system_facts TEXT NOT NULL, raw TEXT NOT NULL
) STRICT;
CREATE INDEX result_configuration ON result (configuration_key);
CREATE INDEX result_signer ON result (signer);
CREATE TABLE figure (
    result_id TEXT NOT NULL REFERENCES result (id), place INTEGER NOT NULL, name TEXT NOT NULL, value REAL NOT NULL,
    unit TEXT NOT NULL, PRIMARY KEY (result_id, place)
) STRICT, WITHOUT ROWID;
CREATE TABLE accuracy (
    result_id TEXT NOT NULL REFERENCES result (id), place INTEGER NOT NULL, name TEXT NOT NULL, value REAL NOT NULL,
    target REAL, passed INTEGER, basis TEXT NOT NULL CHECK (basis IN ('recomputed', 'claimed')),
    PRIMARY KEY (result_id, place)
) STRICT, WITHOUT ROWID;
CREATE TABLE file (
    result_id TEXT NOT NULL REFERENCES result (id), place INTEGER NOT NULL, name TEXT NOT NULL, sha256 TEXT NOT NULL,
    bytes INTEGER NOT NULL, body BLOB, PRIMARY KEY (result_id, place), UNIQUE (result_id, name)
) STRICT;
CREATE TABLE curve_point (
    result_id TEXT NOT NULL REFERENCES result (id), place INTEGER NOT NULL, concurrency INTEGER NOT NULL,
    region TEXT NOT NULL, system_tps REAL NOT NULL, tps_per_user REAL NOT NULL, ttft_p90_ms REAL NOT NULL,
    accuracy REAL, PRIMARY KEY (result_id, place)
) STRICT, WITHOUT ROWID;
CREATE TABLE action (
    seq INTEGER PRIMARY KEY, time TEXT NOT NULL, actor TEXT NOT NULL, result_id TEXT REFERENCES result (id),
    signer TEXT REFERENCES signer, what TEXT NOT NULL, reason TEXT NOT NULL
) STRICT;
CREATE INDEX action_result ON action (result_id);
CREATE INDEX action_signer ON action (signer);
CREATE TRIGGER action_stays BEFORE UPDATE ON action BEGIN SELECT RAISE(ABORT, 'actions are never changed'); END;
CREATE TRIGGER action_is_kept BEFORE DELETE ON action BEGIN SELECT RAISE(ABORT, 'actions are never deleted'); END;
CREATE TABLE listing (
    seq INTEGER PRIMARY KEY REFERENCES result, id TEXT NOT NULL, state TEXT NOT NULL, key TEXT NOT NULL,
    system_key TEXT NOT NULL, kind TEXT NOT NULL, suite TEXT NOT NULL, benchmark TEXT NOT NULL, round TEXT NOT NULL,
    division TEXT NOT NULL, category TEXT NOT NULL, scenario TEXT NOT NULL, precision TEXT NOT NULL,
    tier TEXT NOT NULL, stack TEXT NOT NULL, device TEXT NOT NULL, data_kind TEXT NOT NULL, run_class TEXT NOT NULL,
    accelerator TEXT NOT NULL, accelerator_count INTEGER NOT NULL, nodes INTEGER NOT NULL, cpu TEXT NOT NULL,
    submitter TEXT NOT NULL, system_name TEXT NOT NULL, signer TEXT NOT NULL, stack_version TEXT NOT NULL,
    metric TEXT NOT NULL, value REAL NOT NULL, unit TEXT NOT NULL, higher_is_better INTEGER NOT NULL, valid INTEGER,
    verification TEXT NOT NULL, labels TEXT NOT NULL, made_utc TEXT NOT NULL, added_utc TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX listing_id ON listing (id);
CREATE INDEX listing_key ON listing (key);
CREATE INDEX listing_system ON listing (system_key);
CREATE INDEX listing_signer ON listing (signer);
CREATE INDEX listing_value ON listing (state, value);
CREATE INDEX listing_facets ON listing (
    state, benchmark, precision, scenario, division, kind, accelerator, stack
);
CREATE TABLE label (
    label TEXT NOT NULL, seq INTEGER NOT NULL REFERENCES listing, PRIMARY KEY (label, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX label_seq ON label (seq);
CREATE VIRTUAL TABLE search USING fts5(words, tokenize = "unicode61 remove_diacritics 2");
