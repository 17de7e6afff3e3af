"""Configuration files of the test tool, written by these tests from the published element names,
with values of our own.
"""

from __future__ import annotations

THRESHOLDS = """
    <Thresholds Name="Strict">
      <AverageDatabaseReadLatency>20</AverageDatabaseReadLatency>
      <MaximumDatabaseReadLatency>100</MaximumDatabaseReadLatency>
      <AverageLogWriteLatency>10</AverageLogWriteLatency>
      <MaximumLogWriteLatency>100</MaximumLogWriteLatency>
    </Thresholds>
    <Thresholds Name="Lenient" TestRunTypes="Stress">
      <AverageDatabaseReadLatency>20</AverageDatabaseReadLatency>
      <MaximumDatabaseReadLatency>200</MaximumDatabaseReadLatency>
      <AverageLogWriteLatency>10</AverageLogWriteLatency>
      <MaximumLogWriteLatency>200</MaximumLogWriteLatency>
    </Thresholds>"""

INSTANCE = r"""
      <EseInstance IopsBias="1">
        <DatabasePaths>
          <Path>{drive}:\store{number}\db</Path>
        </DatabasePaths>
        <LogPath>{drive}:\store{number}\log</LogPath>
      </EseInstance>"""


def config_2013(
    *,
    kind: str = "Performance",
    tuning: str = "false",
    threads: str = "4",
    sizing: str = "Profile",
    duration: str = "P0Y0M0DT2H0M0S",
) -> str:
    """A configuration with every field of the 2013 tool and three instances."""
    instances = "".join(
        INSTANCE.format(drive=drive, number=number) for number, drive in enumerate("EFG", 1)
    )
    return f"""<?xml version="1.0"?>
<configuration xmlns:xsd="http://www.w3.org/2001/XMLSchema" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
  <JetstressVersionGenerated>15.0.995.0</JetstressVersionGenerated>
  <EseVersionGenerated>15.0.847.30</EseVersionGenerated>
  <TestDesignInfo>
    <Type>{kind}</Type>
    <MultiHostBreak>false</MultiHostBreak>
    <Description>Three stores &amp; "quotes"</Description>
    <Duration>{duration}</Duration>
    <BinaryPerfLog>true</BinaryPerfLog>
    <VerifyChecksum>true</VerifyChecksum>
    <RunDatabaseMaintenancePerformance>true</RunDatabaseMaintenancePerformance>
    <RunDatabaseMaintenanceSoftRecovery>false</RunDatabaseMaintenanceSoftRecovery>
    <ContinueOnErrors>false</ContinueOnErrors>
    <SuppressTuning>{tuning}</SuppressTuning>
    <UseEseCounters>true</UseEseCounters>
    <PreloadJetCache>0.9</PreloadJetCache>
    <BackupToDisk>false</BackupToDisk>
    <LogFilesToReplay>500</LogFilesToReplay>
    <LogFilesToChecksum>500</LogFilesToChecksum>
    <LogInterval>15000</LogInterval>
    <LogInterval2>5000</LogInterval2>
    <OperationMix LockOps="true" InsertOps="40" DeleteOps="20" ReplaceOps="5" LazyCommits="70" />
    <RetrieveLVOnRead>false</RetrieveLVOnRead>
    <RetrieveLVOnScan>false</RetrieveLVOnScan>
    <PrereadOnRead>false</PrereadOnRead>
    <PrereadOnScan>true</PrereadOnScan>
    <UpdateLV>true</UpdateLV>
    <ScanPercentage>0</ScanPercentage>
    <RestoreBackupPath />
    <OutputPath>.</OutputPath>
    <MaximumChecksumBuffers>20971520</MaximumChecksumBuffers>
    <MaximumChecksumThreads>400</MaximumChecksumThreads>
    <MaximumLatencyErrors>6</MaximumLatencyErrors>
    <SluggishSessions>1</SluggishSessions>
    <BatchRecords>1</BatchRecords>
    <BatchUpdates>16</BatchUpdates>
    <Bulky1Percentage>100</Bulky1Percentage>{THRESHOLDS}
  </TestDesignInfo>
  <ExchangeProfile>
    <ThreadCount>{threads}</ThreadCount>
    <TransPerSec>0</TransPerSec>
    <ThroughputPercentage>100</ThroughputPercentage>
    <DatabaseSource>Open</DatabaseSource>
    <DatabaseSizing>{sizing}</DatabaseSizing>
    <CapacityPercentage>100</CapacityPercentage>
    <MailboxCount>3000</MailboxCount>
    <MailboxQuota>1024</MailboxQuota>
    <MailboxIops>0.12</MailboxIops>
    <MarginIops>0.05</MarginIops>
    <LongPadLength>2000</LongPadLength>
    <ShortPadLength>200</ShortPadLength>
    <DatabaseSpaceReserved>25</DatabaseSpaceReserved>
    <DatabaseCopyCount>3</DatabaseCopyCount>
    <EseInstances>{instances}
    </EseInstances>
  </ExchangeProfile>
  <JetSystemParams>
    <DatabasePageSize>32768</DatabasePageSize>
    <CircularLog>1</CircularLog>
    <LogFileSize>1024</LogFileSize>
    <MaxVerPages>8192</MaxVerPages>
    <DBMThrottling>100</DBMThrottling>
  </JetSystemParams>
</configuration>
"""


def config_2010() -> str:
    """The same of the 2010 tool.

    Another version, no maintenance throttle, and a field that nobody has described.
    """
    text = config_2013(kind="Stress", tuning="true", threads="3", duration="P0Y0M1DT0H0M0S")
    text = text.replace("15.0.995.0", "14.1.180.3").replace("15.0.847.30", "14.1.218.12")
    text = text.replace("    <DBMThrottling>100</DBMThrottling>\n", "")
    return text.replace(
        "    <Bulky1Percentage>",
        '    <Mystery Depth="2"><Inner>a = b</Inner></Mystery>\n    <Bulky1Percentage>',
    )
