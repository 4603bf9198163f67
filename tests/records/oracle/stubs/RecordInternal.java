package org.apache.kafka.common.record.internal;

/** So that the package exists in releases before 4.x, too: JavaRecords imports all of it. */
final class RecordInternal { }
