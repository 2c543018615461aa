{{/* Labels of every object. Call with (dict "root" $ "name" "omni-apiserver"). An optional entry "more" has labels
     that count more than .Values.commonLabels. */}}
{{- define "omni.labels" -}}
{{ include "omni.selector" . }}
app.kubernetes.io/part-of: omni-cluster-operator
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- include "omni.moreLabels" . }}
{{- end }}

{{/* Labels of the Secrets that cert-manager makes for us: whose they are, so that they are found after an uninstall, and that
     omni-controller uses them for nobody. Without versions: a new chart changes no Secret. Call as omni.labels. */}}
{{- define "omni.secretLabels" -}}
{{ include "omni.selector" . }}
app.kubernetes.io/part-of: omni-cluster-operator
omni.texashpc.com/protected: "true"
{{- end }}

{{/* Labels of Pods. Without versions: a new chart with the same image restarts nothing. */}}
{{- define "omni.podLabels" -}}
{{ include "omni.selector" . }}
app.kubernetes.io/part-of: omni-cluster-operator
{{- include "omni.moreLabels" . }}
{{- end }}

{{/* Labels of the user's. One that is ours as well would be there twice, and selectors would miss their Pods. */}}
{{- define "omni.moreLabels" -}}
{{- $ours := list "app.kubernetes.io/name" "app.kubernetes.io/part-of" "app.kubernetes.io/version" "app.kubernetes.io/managed-by" "helm.sh/chart" "omni.texashpc.com/serves" -}}
{{- $labels := merge (dict) (.more | default dict) (.root.Values.commonLabels | default dict) -}}
{{- range keys $labels -}}
{{- if has . $ours -}}
{{- fail (printf "the label %s is the chart's own: take it out of commonLabels, podLabels and the labels below monitoring" .) -}}
{{- end -}}
{{- end -}}
{{- with $labels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* What a Service or a workload selects by. It never changes: selectors of workloads are immutable. */}}
{{- define "omni.selector" -}}
app.kubernetes.io/name: {{ .name }}
{{- with .serves }}
omni.texashpc.com/serves: {{ . }}
{{- end }}
{{- end }}

{{/* The one image with both programs. */}}
{{- define "omni.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{/* Where Pods go: what both programs have in common. The image is for Linux, and on Windows a driver may format a volume that has data.
     Call with (dict "root" $ "settings" .Values.apiserver "selector" <selector labels> "replicas" 2). */}}
{{- define "omni.placement" -}}
{{- with .settings.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
nodeSelector:
  {{- merge (dict) (.settings.nodeSelector | default dict) (dict "kubernetes.io/os" "linux") | toYaml | nindent 2 }}
{{- with .settings.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .settings.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if .settings.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- range .settings.topologySpreadConstraints }}
  - {{ toYaml . | nindent 4 | trim }}
    {{- if not .labelSelector }}
    labelSelector:
      matchLabels:
        {{- $.selector | nindent 8 }}
    {{- end }}
  {{- end }}
{{- else if gt (int .replicas) 1 }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- .selector | nindent 8 }}
{{- end }}
{{- end }}

{{/* Namespaces that controllers serve, as a JSON list; none with allNamespaces. */}}
{{- define "omni.namespaces" -}}
{{- if .Values.controller.allNamespaces -}}
[]
{{- else -}}
{{ .Values.controller.namespaces | default (list .Release.Namespace) | uniq | sortAlpha | toJson }}
{{- end -}}
{{- end }}

{{/* Fails if more flags repeat one that the chart gives: the last one would count, and ports, probes and volumes would
     not fit it any more. Call with (dict "path" "apiserver.extraArgs" "given" <arguments as text> "extra" <list>). */}}
{{- define "omni.refuseRepeatedFlags" -}}
{{- $given := printf "%s\n" .given | replace "\"" "" -}}
{{- range .extra -}}
{{- $flag := regexFind "^[^=]+" . | trimPrefix "--" | trimPrefix "-" | replace "_" "-" -}}
{{- if regexMatch (printf "(?m)^- --%s(=|$)" $flag) $given -}}
{{- fail (printf "%s: --%s is given by the chart already: use the value that it comes from, or leave it out" $.path $flag) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* Fails if the objects are elsewhere: a `helm upgrade` that forgot some values, or changed the names, would otherwise serve an
     empty API: nobody renews exported kubeconfigs then, and what others gave an owner reference to one of the objects is
     removed by the garbage collector. Without a cluster, as in `helm template`, nothing is found and nothing refused. */}}
{{- define "omni.refuseOtherStorage" -}}
{{- $embedded := .Values.apiserver.etcd.embedded.enabled -}}
{{- $now := ternary "embedded" "external" $embedded -}}
{{- $name := printf "%s-apiserver" (include "omni.prefix" .) -}}
{{- range $kind, $before := dict "StatefulSet" "embedded" "Deployment" "external" -}}
{{- range (lookup "apps/v1" $kind $.Release.Namespace "").items -}}
{{- if eq (get (.metadata.labels | default dict) "app.kubernetes.io/name") "omni-apiserver" -}}
{{- if ne $before $now -}}
{{- fail (printf "apiserver.etcd: the %s %s has the objects in the %s etcd, and these values ask for the %s one, which does not have them. Give all values of the release again (helm get values). If you moved the objects (docs/how-to/high-availability.md) or want to begin without any, delete the %s first" $kind .metadata.name $before $now $kind) -}}
{{- else if and $embedded (ne .metadata.name $name) -}}
{{- fail (printf "nameOverride, fullnameOverride: the StatefulSet %s has the objects on the claim data-%s-0, and %s would begin without any. Give the names of before again. To change them, see docs/how-to/install.md (Names)" .metadata.name .metadata.name $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* Fails if a controller runs that would look at the same objects as a new one, with a lease elsewhere: both would work. Leases
     are in the namespace that is served, or in the release's if all are. Without a cluster, as in `helm template`, nothing is
     found and nothing refused. */}}
{{- define "omni.refuseOtherControllers" -}}
{{- $all := .Values.controller.allNamespaces -}}
{{- $elsewhere := without (include "omni.namespaces" . | fromJsonArray) .Release.Namespace -}}
{{- range $found := (lookup "apps/v1" "Deployment" .Release.Namespace "").items -}}
{{- $labels := .metadata.labels | default dict -}}
{{- if and (eq (get $labels "app.kubernetes.io/name") "omni-controller") (gt (int .spec.replicas) 0) -}}
{{- $serves := get $labels "omni.texashpc.com/serves" | default "own_or_all" -}}
{{- $does := "" -}}
{{- if and $all (ne $serves "own_or_all") -}}
{{- $does = printf "the namespace %s" $serves -}}
{{- else if and $elsewhere (has "--all-namespaces" ((index .spec.template.spec.containers 0).args | default list)) -}}
{{- $does = "all namespaces" -}}
{{- end -}}
{{- with $does -}}
{{- fail (printf "controller.allNamespaces, controller.namespaces: the Deployment %s serves %s, and the new controllers would work on the same objects at the same time, with leases of their own. Stop it first: kubectl scale deployment/%s --namespace=%s --replicas=0, and upgrade when its Pods are gone (docs/how-to/high-availability.md, Shards)" $found.metadata.name . $found.metadata.name $.Release.Namespace) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* The namespaces, as a JSON list, that a controller of their own serves now, and these values do not. Without a cluster, as in
     `helm template`, there are none. */}}
{{- define "omni.unserved" -}}
{{- $unserved := list -}}
{{- $served := include "omni.namespaces" . | fromJsonArray -}}
{{- range (lookup "apps/v1" "Deployment" .Release.Namespace "").items -}}
{{- $labels := .metadata.labels | default dict -}}
{{- $all := has "--all-namespaces" ((index .spec.template.spec.containers 0).args | default list) -}}
{{- if and (eq (get $labels "app.kubernetes.io/name") "omni-controller") (not $all) -}}
{{- $serves := get $labels "omni.texashpc.com/serves" -}}
{{- $namespace := ternary $.Release.Namespace $serves (has $serves (list "" "own_or_all")) -}}
{{- if not (or $.Values.controller.allNamespaces (has $namespace $served)) -}}
{{- $unserved = append $unserved $namespace -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{ $unserved | uniq | sortAlpha | toJson }}
{{- end }}

{{/* The lines of a probe that say how often and how long. Call with (dict "of" <values>), with "failures" where Kubernetes' 3 is not the default. */}}
{{- define "omni.probeTiming" -}}
periodSeconds: {{ .of.periodSeconds }}
timeoutSeconds: {{ .of.timeoutSeconds }}
failureThreshold: {{ .of.failureThreshold | default .failures | default 3 }}
{{- end }}

{{/* How many Pods of the API server there are. */}}
{{- define "omni.apiserverReplicas" -}}
{{- if .Values.apiserver.etcd.embedded.enabled }}1{{ else }}{{ .Values.apiserver.etcd.external.replicas }}{{ end -}}
{{- end }}

{{/* A duration as the schema allows it (such as 1h30m), in seconds. */}}
{{- define "omni.seconds" -}}
{{- $sum := 0 -}}
{{- range regexFindAll "[0-9]+[hms]" . -1 -}}
{{- $seconds := get (dict "h" 3600 "m" 60 "s" 1) (regexFind "[hms]" .) -}}
{{- $sum = add $sum (mul (regexFind "[0-9]+" . | atoi) $seconds) -}}
{{- end -}}
{{ $sum }}
{{- end }}

{{/* A quantity as the schema allows it for a volume (such as 8Gi), in bytes. */}}
{{- define "omni.bytes" -}}
{{- $units := dict "k" 1000 "Ki" 1024 "M" 1000000 "Mi" 1048576 "G" 1000000000 "Gi" 1073741824 "T" 1000000000000 "Ti" 1099511627776 -}}
{{ mulf (regexFind "^[0-9.]+" . | float64) (get $units (regexFind "[a-zA-Z]*$" .) | default 1 | float64) | int64 }}
{{- end }}

{{/* Fails if cert-manager would refuse the durations of the certificates, or if the authority could expire while a certificate
     that it signed is in use. Here and not by cert-manager's webhook, half-way through an installation. */}}
{{- define "omni.refuseDurations" -}}
{{- $own := not .Values.certificates.serving.issuerRef.name -}}
{{- range $name, $of := dict "ca" .Values.certificates.ca "serving" .Values.certificates.serving -}}
{{- if or $own (ne $name "ca") -}}
{{- $duration := include "omni.seconds" $of.duration | atoi -}}
{{- $renewBefore := include "omni.seconds" $of.renewBefore | atoi -}}
{{- if lt $duration 3600 -}}
{{- fail (printf "certificates.%s.duration: %s is less than 1h, and cert-manager refuses that" $name $of.duration) -}}
{{- else if gt $duration 3153600000 -}}
{{- fail (printf "certificates.%s.duration: %s is more than a hundred years (876000h)" $name $of.duration) -}}
{{- else if lt $renewBefore 300 -}}
{{- fail (printf "certificates.%s.renewBefore: %s is less than 5m, and cert-manager refuses that" $name $of.renewBefore) -}}
{{- else if ge $renewBefore $duration -}}
{{- fail (printf "certificates.%s.renewBefore: %s is not less than certificates.%s.duration (%s): set both" $name $of.renewBefore $name $of.duration) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- with .Values.certificates -}}
{{- $inUse := sub (include "omni.seconds" .serving.duration | atoi) (include "omni.seconds" .serving.renewBefore | atoi) -}}
{{- if and $own (le (include "omni.seconds" .ca.renewBefore | atoi) $inUse) -}}
{{- fail (printf "certificates.ca.renewBefore: %s has to be more than certificates.serving.duration - certificates.serving.renewBefore (%s - %s): for so long a serving certificate is in use, and the authority must not expire meanwhile" .ca.renewBefore .serving.duration .serving.renewBefore) -}}
{{- end -}}
{{- end -}}
{{- end }}
