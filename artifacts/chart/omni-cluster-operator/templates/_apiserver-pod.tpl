{{/* The Pod of omni-apiserver, the same in the StatefulSet and in the Deployment. */}}
{{- define "omni.apiserverPod" -}}
{{- $settings := .Values.apiserver -}}
{{- $selector := include "omni.selector" (dict "name" "omni-apiserver") -}}
metadata:
  labels:
    {{- include "omni.podLabels" (dict "root" $ "name" "omni-apiserver" "more" $settings.podLabels) | nindent 4 }}
  annotations:
    {{- merge (dict) ($settings.podAnnotations | default dict) (dict "kubectl.kubernetes.io/default-container" "omni-apiserver") | toYaml | nindent 4 }}
spec:
  serviceAccountName: {{ include "omni.apiserverAccount" . }}
  automountServiceAccountToken: true
  enableServiceLinks: false
  {{- with .Values.image.pullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  terminationGracePeriodSeconds: {{ $settings.terminationGracePeriodSeconds }}
  {{- with .Values.podSecurityContext }}
  securityContext:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with include "omni.placement" (dict "settings" $settings "selector" $selector "replicas" (include "omni.apiserverReplicas" .)) }}
  {{- . | trim | nindent 2 }}
  {{- end }}
  containers:
    - name: omni-apiserver
      image: {{ include "omni.image" . }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      command: [/omni-apiserver]
      args:
        {{- $args := include "omni.apiserverArgs" . | trim }}
        {{- include "omni.refuseRepeatedFlags" (dict "path" "apiserver.extraArgs" "given" $args "extra" $settings.extraArgs) }}
        {{- $args | nindent 8 }}
        {{- range $settings.extraArgs }}
        - {{ . | quote }}
        {{- end }}
      {{- with $settings.extraEnv }}
      env:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      ports:
        - name: https
          containerPort: 8443
          protocol: TCP
      {{- include "omni.apiserverProbes" . | nindent 6 }}
      resources:
        {{- toYaml $settings.resources | nindent 8 }}
      {{- with .Values.securityContext }}
      securityContext:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      volumeMounts:
        {{- include "omni.apiserverMounts" . | nindent 8 }}
  volumes:
    {{- include "omni.apiserverVolumes" . | nindent 4 }}
{{- end }}

{{- define "omni.apiserverArgs" -}}
{{- $settings := .Values.apiserver -}}
{{- $embedded := $settings.etcd.embedded -}}
{{- $external := $settings.etcd.external -}}
- --secure-port=8443
- --tls-cert-file=/etc/omni-apiserver/tls/tls.crt
- --tls-private-key-file=/etc/omni-apiserver/tls/tls.key
{{- if not (regexMatch "(?m)^--?tls[-_]min[-_]version(=|$)" (join "\n" $settings.extraArgs)) }}
- --tls-min-version=VersionTLS12
{{- end }}
{{- if $embedded.enabled }}
- --etcd-data-dir=/var/lib/omni-apiserver/etcd
- --etcd-quota-backend-bytes={{ int64 $embedded.quotaBackendBytes }}
- --etcd-snapshot-interval={{ $embedded.snapshots.interval }}
- --etcd-snapshot-retention={{ int64 $embedded.snapshots.retention }}
- --etcd-snapshot-dir={{ if $embedded.snapshots.persistence.enabled }}/var/lib/omni-snapshots{{ else }}/var/lib/omni-apiserver{{ end }}/snapshots
{{- else }}
- --etcd-servers={{ join "," $external.servers }}
- --etcd-cafile=/etc/omni-apiserver/etcd/ca.crt
- --etcd-certfile=/etc/omni-apiserver/etcd/tls.crt
- --etcd-keyfile=/etc/omni-apiserver/etcd/tls.key
- --etcd-prefix={{ $external.prefix }}
{{- end }}
{{- with $.Values.apiserver.limits }}
- --max-objects-per-namespace={{ int64 .maxObjectsPerNamespace }}
- --max-bytes-per-namespace={{ int64 .maxBytesPerNamespace }}
- --max-objects={{ int64 .maxObjects }}
- --max-bytes={{ int64 .maxBytes }}
- --max-list-bytes-in-flight={{ int64 .maxListBytesInFlight }}
{{- end }}
{{- with include "omni.namespaces" . | fromJsonArray }}
- --controller-namespaces={{ join "," . }}
{{- end }}
{{- with .Values.managementClusterName }}
- {{ printf "--management-cluster-name=%s" . | quote }}
{{- end }}
{{- with .Values.hubID }}
- {{ printf "--hub-id=%s" . | quote }}
{{- end }}
{{- if $settings.requireDeletionConfirmation }}
- --require-deletion-confirmation
{{- end }}
{{- if $settings.checkReferences }}
- --check-references
{{- end }}
{{- if $settings.audit.enabled }}
- --audit-log-path=-
{{- if $settings.audit.policyConfigMap }}
- --audit-policy-file=/etc/omni-apiserver/audit/policy.yaml
{{- end }}
{{- end }}
{{- if $settings.encryption.secretName }}
- --encryption-provider-config=/etc/omni-apiserver/encryption/encryption-config.yaml
- --encryption-provider-config-automatic-reload
{{- end }}
{{- end }}

{{/* An etcd that is away is no reason to restart: liveness leaves it out, readiness does not. One of several replicas
     leaves the Service at once. The only one stays for a while: without it every caller would get an error for sure, and
     its etcd may just be busy, with a defragmentation for example. */}}
{{- define "omni.apiserverProbes" -}}
{{- $probes := .Values.apiserver.healthProbe -}}
startupProbe:
  httpGet:
    scheme: HTTPS
    port: https
    path: /livez?exclude=etcd
  {{- include "omni.probeTiming" (dict "of" $probes.startup) | nindent 2 }}
livenessProbe:
  httpGet:
    scheme: HTTPS
    port: https
    path: /livez?exclude=etcd
  {{- include "omni.probeTiming" (dict "of" $probes.liveness) | nindent 2 }}
readinessProbe:
  httpGet:
    scheme: HTTPS
    port: https
    path: /readyz
  {{- include "omni.probeTiming" (dict "of" $probes.readiness "failures" (ternary 15 1 (eq (include "omni.apiserverReplicas" .) "1"))) | nindent 2 }}
{{- end }}

{{- define "omni.apiserverMounts" -}}
{{- $settings := .Values.apiserver -}}
- name: tmp
  mountPath: /tmp
- name: tls
  mountPath: /etc/omni-apiserver/tls
  readOnly: true
{{- if $settings.etcd.embedded.enabled }}
- name: data
  mountPath: /var/lib/omni-apiserver
{{- if $settings.etcd.embedded.snapshots.persistence.enabled }}
- name: snapshots
  mountPath: /var/lib/omni-snapshots
{{- end }}
{{- else }}
- name: etcd-client
  mountPath: /etc/omni-apiserver/etcd
  readOnly: true
{{- end }}
{{- if and $settings.audit.enabled $settings.audit.policyConfigMap }}
- name: audit-policy
  mountPath: /etc/omni-apiserver/audit
  readOnly: true
{{- end }}
{{- if $settings.encryption.secretName }}
- name: encryption
  mountPath: /etc/omni-apiserver/encryption
  readOnly: true
{{- end }}
{{- with $settings.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "omni.apiserverVolumes" -}}
{{- $settings := .Values.apiserver -}}
- name: tmp
  emptyDir:
    sizeLimit: 64Mi
# Made by cert-manager or by you; the Pod waits for it.
- name: tls
  secret:
    secretName: {{ include "omni.servingSecret" . }}
    defaultMode: 0440
{{- if not $settings.etcd.embedded.enabled }}
- name: etcd-client
  secret:
    secretName: {{ $settings.etcd.external.tlsSecretName }}
    defaultMode: 0440
{{- end }}
{{- if and $settings.audit.enabled $settings.audit.policyConfigMap }}
- name: audit-policy
  configMap:
    name: {{ $settings.audit.policyConfigMap }}
{{- end }}
{{- if $settings.encryption.secretName }}
- name: encryption
  secret:
    secretName: {{ $settings.encryption.secretName }}
    defaultMode: 0440
{{- end }}
{{- with $settings.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}
